use proptest::prelude::*;

use super::*;

fn file(dtype: BlobType, data: &[u8], padding_bits: u64) -> Vec<u8> {
    let mut file = header(1).to_vec();
    file.extend(metadata(dtype, data.len() as u64, 64, padding_bits));
    file.extend(data);
    file
}

fn read_vec(file: Vec<u8>, offset: u64) -> Result<Blob, BlobError> {
    read(&Bytes::from(file), offset)
}

fn with(at: usize, bytes: &[u8]) -> Result<Blob, BlobError> {
    let mut file = file(BlobType::UInt3, &[1, 2, 3, 4], 2);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    read_vec(file, 64)
}

#[test]
fn codes_and_sizes() {
    assert_eq!(BlobType::from_code(0), None);
    assert_eq!(BlobType::from_code(18), None);
    for (index, dtype) in BlobType::ALL.into_iter().enumerate() {
        assert_eq!(dtype.code() as usize, index + 1);
        assert_eq!(BlobType::from_code(dtype.code()), Some(dtype));
        for elements in 0..50 {
            let (length, padding_bits) = dtype.bytes_for(elements).expect("small");
            let blob = read_vec(file(dtype, &vec![7; length as usize], padding_bits), 64).expect("a blob");
            assert_eq!((blob.elements(), blob.dtype), (elements, dtype));
        }
        assert_eq!(dtype.bytes_for(u64::MAX).is_none(), dtype != BlobType::UInt1);
    }
}

#[test]
fn every_check_of_a_blob() {
    assert_eq!(with(0, &[]).expect("a blob").elements(), 10);
    assert_eq!(with(4, &[1]), Err(BlobError::Version { found: 1 }));
    assert_eq!(with(64, &[0]), Err(BlobError::Sentinel { found: 0xDEAD_BE00 }));
    assert_eq!(with(68, &[18]), Err(BlobError::Type { found: 18 }));
    assert_eq!(with(72, &5_u64.to_le_bytes()), Err(BlobError::DataOutside { start: 128, length: 5, size: 132 }));
    let length = u64::MAX;
    assert_eq!(with(72, &length.to_le_bytes()), Err(BlobError::DataOutside { start: 128, length, size: 132 }));
    assert_eq!(with(80, &[0]), Err(BlobError::DataOffset { found: 0 }));
    assert_eq!(with(80, &[129]), Err(BlobError::DataOffset { found: 129 }));
    assert!(matches!(with(80, &[0, 1]), Err(BlobError::DataOutside { start: 256, .. })));
    for (padding_bits, dtype) in [(3, BlobType::UInt3), (8, BlobType::UInt3), (u64::MAX, BlobType::UInt3)] {
        assert_eq!(with(88, &padding_bits.to_le_bytes()), Err(BlobError::Partial { dtype, length: 4, padding_bits }));
    }
    let garbage = read_vec(file(BlobType::Int8, &[1, 2, 3], 77), 64).expect("reserved before iOS 18, so not read");
    assert_eq!((garbage.elements(), garbage.padding_bits), (3, 0));
    assert!(matches!(read_vec(file(BlobType::Float32, &[0; 6], 0), 64), Err(BlobError::Partial { .. })));

    for offset in [0, 1, 63, 65, u64::MAX] {
        assert_eq!(read_vec(file(BlobType::Int8, &[0; 200], 0), offset), Err(BlobError::Offset));
    }
    for offset in [128 + 256, u64::MAX - 63] {
        assert!(matches!(read_vec(file(BlobType::Int8, &[0; 200], 0), offset), Err(BlobError::MetadataOutside { .. })));
    }
    let whole = file(BlobType::UInt1, &[1, 2, 3], 0);
    for length in 0..whole.len() {
        assert!(read_vec(whole[..length].to_vec(), 64).is_err(), "truncated to {length}");
    }
    let damaged = read_vec(whole[..whole.len() - 1].to_vec(), 64).expect_err("truncated");
    assert_eq!(damaged.to_string(), "its 3 bytes at byte 128 end beyond the file's 130; copy or download it again");
}

proptest! {
    #[test]
    fn any_bytes_at_any_offset(bytes in prop::collection::vec(any::<u8>(), 0..512), offset: u64, slot in 0_u64..8) {
        let file = Bytes::from(bytes);
        let _ = read(&file, offset);
        let _ = read(&file, 64 * slot);
    }

    #[test]
    fn any_damage_to_a_blob(at in 0_usize..140, value: u8, padding_bits in 0_u64..8) {
        let mut file = file(BlobType::UInt6, &[9; 12], padding_bits);
        file[at] = value;
        if let Ok(blob) = read_vec(file, 64) {
            prop_assert!(blob.elements() * blob.dtype.bits() + blob.padding_bits == blob.bytes.len() as u64 * 8);
        }
    }
}
