//! Images as features.

use super::SizeRange;

/// Size and colours of an image that a caller gives or gets.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImageFeatureType {
    /// Default width in pixels.
    #[prost(int64, tag = "1")]
    pub width: i64,
    /// Default height in pixels.
    #[prost(int64, tag = "2")]
    pub height: i64,
    /// A [`ColorSpace`], as its number.
    #[prost(enumeration = "ColorSpace", tag = "3")]
    pub color_space: i32,
    /// Other sizes that are allowed.
    #[prost(oneof = "ImageSizeFlexibility", tags = "21, 31")]
    pub size_flexibility: Option<ImageSizeFlexibility>,
}

/// Which sizes are allowed beside the default one.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ImageSizeFlexibility {
    /// Any of a list.
    #[prost(message, tag = "21")]
    EnumeratedSizes(EnumeratedImageSizes),
    /// Ranges of width and height.
    #[prost(message, tag = "31")]
    ImageSizeRange(ImageSizeRange),
}

/// A list of allowed sizes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EnumeratedImageSizes {
    /// The sizes.
    #[prost(message, repeated, tag = "1")]
    pub sizes: Vec<ImageSize>,
}

/// One allowed size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct ImageSize {
    /// In pixels.
    #[prost(uint64, tag = "1")]
    pub width: u64,
    /// In pixels.
    #[prost(uint64, tag = "2")]
    pub height: u64,
}

/// Ranges of width and height.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct ImageSizeRange {
    /// Of the width.
    #[prost(message, optional, tag = "1")]
    pub width_range: Option<SizeRange>,
    /// Of the height.
    #[prost(message, optional, tag = "2")]
    pub height_range: Option<SizeRange>,
}

/// Colour spaces of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs, reason = "the variants are the colour spaces' own names")]
pub enum ColorSpace {
    Invalid = 0,
    Grayscale = 10,
    Rgb = 20,
    Bgr = 30,
    GrayscaleFloat16 = 40,
}
