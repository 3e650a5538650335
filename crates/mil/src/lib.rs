//! MIL, Core ML's model intermediate language: program, types, verifier, text form, operations, interpreter.
//!
//! Numbers: floating elements of every declared width are computed and kept in `f32`; they are rounded to the declared
//! width only where they land in a state or an output of the program. Integers are kept in `i32`.

pub mod build;
pub mod case;
mod compare;
pub mod compressed;
pub mod constant;
pub mod decode;
pub mod encode;
pub mod error;
pub mod fused;
pub mod interpret;
pub mod kept;
pub mod layout;
pub mod load;
pub mod lower;
pub mod model;
mod names;
pub mod numbers;
pub mod op;
pub mod operands;
pub mod ops;
pub mod packed;
pub mod place;
pub mod port;
pub mod program;
pub mod stored;
pub mod tensor;
pub mod text;
pub mod types;
pub mod verify;
mod wire;

pub use constant::{BlobRef, Const, ConstError, TensorConst};
pub use decode::{Blobs, decode, decode_model};
pub use encode::encode;
pub use error::MilError;
pub use load::{load, load_package};
pub use model::{Metadata, Model};
pub use op::{Arity, Effect, Op, OpError, Operands, Out, Param, Results};
pub use place::{OpPlace, Place};
pub use port::{Port, PortDefault, PortKind, PortShape, Ports, StatePort};
pub use program::{Argument, Block, Function, Kind, Operation, Program, Value, ValueId};
pub use tensor::{Buffer, Data, DataMut, Tensor};
pub use types::{Class, DType, Dim, Opset, Shape, StaticType, TensorType, Type};
pub use verify::{Diagnostic, Problem, verify, verify_model};
