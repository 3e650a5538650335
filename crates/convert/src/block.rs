//! Parts that architectures are made of.

pub(crate) mod attention;
pub(crate) mod embedding;
pub(crate) mod head;
pub(crate) mod layers;
pub(crate) mod mask;
pub(crate) mod mlp;
pub(crate) mod norm;
pub(crate) mod rope;
pub(crate) mod softcap;
