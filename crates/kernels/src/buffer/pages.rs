//! Pages of buffers that are left alone for a while.

#![allow(unsafe_code, reason = "it tells the system that pages may go")]

/// Numbers that are numbers whatever their bytes are.
pub trait Number: Copy + sealed::Sealed {}

impl Number for f32 {}
impl Number for i32 {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for i32 {}
}

/// Gives the pages that lie wholly in `numbers` back to the system, where it takes them. They are there again, as some numbers
/// or other, as soon as they are touched.
pub fn give_back<T: Number>(numbers: &mut [T]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let page = rustix::param::page_size();
        let bytes = numbers.as_mut_ptr_range();
        let (start, end) = (bytes.start.addr().next_multiple_of(page), bytes.end.addr() / page * page);
        if start < end {
            let start = bytes.start.with_addr(start).cast();
            // SAFETY: the pages hold nothing but numbers that are borrowed for writing, and whatever the system gives
            // instead of them are numbers too. A refusal changes nothing.
            let _refused = unsafe { rustix::mm::madvise(start, end - start.addr(), DONT_NEED) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = numbers;
}

#[cfg(all(target_os = "linux", not(miri)))]
const DONT_NEED: rustix::mm::Advice = rustix::mm::Advice::LinuxDontNeed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_are_given_back_and_nothing_around_them() {
        let mut all = vec![7.0f32; 100_000];
        give_back(&mut all[1000..99_000]);
        assert!(all[..1000].iter().chain(&all[99_000..]).all(|&x| x == 7.0));
        #[cfg(all(target_os = "linux", not(miri)))]
        assert!(all[1000 + 1024..99_000 - 1024].iter().all(|&x| x == 0.0), "zeros are what new pages have");
        all.fill(3.0);
        assert!(all.iter().all(|&x| x == 3.0));
    }

    #[test]
    fn less_than_a_page_stays() {
        let mut few = [5; 100];
        give_back(&mut few);
        give_back::<i32>(&mut []);
        assert_eq!(few, [5; 100]);
    }
}
