//! MIL, Core ML's model intermediate language: program, types, verifier, text form, operations, interpreter.
