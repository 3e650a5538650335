#!/usr/bin/env python3
"""Has coremltools, which knows nothing of Anemone, look at a package that Anemone wrote.

    python3 with_coremltools.py PACKAGE [--checkpoint FOLDER]

- coremltools loads the package; what its description says of functions, inputs, outputs and states is held to what the
  program declares, and listed;
- the program is loaded into PyMIL, which infers the type of every operation's results anew; they are held to the types
  that the package declares;
- with --checkpoint, every weight of the Hugging Face folder must be in the package, as it is rounded to half floats
  (only if the package stores its weights as f16).

Ends with status 1 and a line for each fault, if there is any.
"""

import argparse
import json
import logging
import struct
import sys
from pathlib import Path

# Off Apple's systems it warns of every part that cannot run models.
logging.disable(logging.WARNING)

import coremltools as ct  # noqa: E402
import numpy as np  # noqa: E402
from coremltools.converters.mil.frontend.milproto import load as milproto  # noqa: E402
from coremltools.converters.mil.mil import types  # noqa: E402
from coremltools.proto import FeatureTypes_pb2, MIL_pb2  # noqa: E402

faults = []


def fault(text):
    faults.append(text)
    print(f"fault: {text}")


# --- the description ------------------------------------------------------------------------------------------------

ARRAY = FeatureTypes_pb2.ArrayFeatureType
ARRAY_TYPES = {
    ARRAY.FLOAT16: MIL_pb2.FLOAT16,
    ARRAY.FLOAT32: MIL_pb2.FLOAT32,
    ARRAY.DOUBLE: MIL_pb2.FLOAT64,
    ARRAY.INT32: MIL_pb2.INT32,
}


def tensor_type(value_type):
    """Element type and shape of a MIL tensor or state, with None for an extent that varies."""
    if value_type.WhichOneof("type") == "stateType":
        value_type = value_type.stateType.wrappedType
    tensor = value_type.tensorType
    return tensor.dataType, [d.constant.size if d.WhichOneof("dimension") == "constant" else None for d in tensor.dimensions]


def show(type_and_shape):
    dtype, shape = type_and_shape
    return f"{MIL_pb2.DataType.Name(dtype).lower()} ({', '.join('?' if n is None else str(n) for n in shape)})"


def ports_agree(function, what, described, declared):
    """Holds features of the description to the values that the program declares, both by name."""
    if described.keys() != declared.keys():
        fault(f"{function}: the description's {what} are {sorted(described)}, the program's {sorted(declared)}")
    for name in sorted(described.keys() & declared.keys()):
        kind = described[name].type
        array = kind.stateType.arrayType if kind.WhichOneof("Type") == "stateType" else kind.multiArrayType
        found = (ARRAY_TYPES.get(array.dataType), list(array.shape))
        # The shape of an output that varies is left out, as coremltools does.
        left_out = what == "outputs" and not array.shape and None in declared[name][1] and found[0] == declared[name][0]
        if array.WhichOneof("ShapeFlexibility") is None and found != declared[name] and not left_out:
            fault(f"{function}: {what[:-1]} {name} is described as {found} and declared as {declared[name]}")
        print(f"  {what[:-1]} {name}: {show(declared[name])}")


def check_description(spec):
    description = spec.description
    print(f"specification version {spec.specificationVersion}, default function {description.defaultFunctionName or 'main'}")
    functions = dict(spec.mlProgram.functions)
    if description.functions:
        described = {f.name: f for f in description.functions}
        if description.defaultFunctionName not in described:
            fault(f"the default function {description.defaultFunctionName!r} is not described")
    else:
        described = {"main": description}
    if described.keys() != functions.keys():
        fault(f"functions described: {sorted(described)}; in the program: {sorted(functions)}")
    if any(f.state for f in described.values()) and spec.specificationVersion < 9:
        fault(f"states need specification version 9, this is {spec.specificationVersion}")
    states = {}
    for name in sorted(described.keys() & functions.keys()):
        print(f"function {name}")
        function = functions[name]
        block = function.block_specializations[function.opset]
        values = {i.name: i.type for i in function.inputs}
        is_state = {n: t.WhichOneof("type") == "stateType" for n, t in values.items()}
        inputs = {n: tensor_type(t) for n, t in values.items() if not is_state[n]}
        state = {n: tensor_type(t) for n, t in values.items() if is_state[n]}
        results = {o.name: o.type for op in block.operations for o in op.outputs}
        outputs = {n: tensor_type(results[n] if n in results else values[n]) for n in block.outputs}
        features = lambda list_: {f.name: f for f in list_}  # noqa: E731
        ports_agree(name, "inputs", features(described[name].input), inputs)
        ports_agree(name, "outputs", features(described[name].output), outputs)
        ports_agree(name, "states", features(described[name].state), state)
        for state_name, ty in state.items():
            if states.setdefault(state_name, ty) != ty:
                fault(f"{name}: state {state_name} is {show(ty)} here and {show(states[state_name])} in another function")


# --- the program ----------------------------------------------------------------------------------------------------

DTYPES = {
    types.fp16: MIL_pb2.FLOAT16,
    types.fp32: MIL_pb2.FLOAT32,
    types.bool: MIL_pb2.BOOL,
    types.int8: MIL_pb2.INT8,
    types.uint8: MIL_pb2.UINT8,
    types.int16: MIL_pb2.INT16,
    types.uint16: MIL_pb2.UINT16,
    types.int32: MIL_pb2.INT32,
    types.str: MIL_pb2.STRING,
}


def check_program(spec, weights):
    """Loads the program into PyMIL and returns it; None if PyMIL refuses it."""
    try:
        program = milproto.load(spec, specification_version=spec.specificationVersion, file_weights_dir=str(weights))
    except Exception as refusal:  # of any kind: it has none of its own
        fault(f"PyMIL refuses the program: {type(refusal).__name__}: {refusal}")
        return None
    for name, function in sorted(program.functions.items()):
        proto = spec.mlProgram.functions[name]
        declared = {}
        for op in proto.block_specializations[proto.opset].operations:
            declared.update((o.name, (op.type, o.type)) for o in op.outputs)
        compared = 0
        for op in function.operations:
            for output in op.outputs:
                if output.name not in declared:
                    continue
                kind, value_type = declared[output.name]
                if value_type.WhichOneof("type") != "tensorType":
                    continue
                expected = tensor_type(value_type)
                shape = [int(n) if isinstance(n, (int, np.integer)) else None for n in output.shape]
                compared += 1
                dtype = DTYPES.get(output.dtype)
                if (dtype is not None and dtype != expected[0]) or shape != expected[1]:
                    fault(f"{name}: {kind} {output.name} is declared {show(expected)}, PyMIL infers {output.dtype} {shape}")
        print(f"program, function {name}: {len(function.operations)} operations, {compared} types inferred anew")
        if compared == 0:
            fault(f"{name}: no operation could be compared")
    return program


# --- the weights ----------------------------------------------------------------------------------------------------


def safetensors(path):
    """Tensors of a safetensors file, read by its published format with numpy alone: also BF16, which numpy lacks."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    for name, info in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        raw = data[begin:end]
        if info["dtype"] == "BF16":
            values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, {"F16": "<f2", "F32": "<f4"}[info["dtype"]])
        yield name, values.reshape(info["shape"])


def check_weights(program, folder):
    """Every tensor of the checkpoint is a constant of every function, as half floats."""
    for name, function in sorted(program.functions.items()):
        constants = {}
        for op in function.operations:
            for output in op.outputs if op.op_type == "const" else []:
                value = output.val
                if isinstance(value, np.ndarray) and value.size > 1:
                    constants.setdefault(value.size, []).append((output.name, value))
        count = 0
        for path in sorted(folder.glob("*.safetensors")):
            for tensor, values in safetensors(path):
                values = values.astype(np.float16)
                same = [n for n, c in constants.get(values.size, []) if np.array_equal(c.reshape(values.shape), values)]
                count += 1
                if not same:
                    fault(f"{name}: {tensor} of the checkpoint is not among the constants")
        print(f"weights, function {name}: {count} tensors of the checkpoint looked for")
        if count == 0:
            fault(f"{folder} holds no safetensors")


def main():
    parser = argparse.ArgumentParser(description="Has coremltools check a package.")
    parser.add_argument("package", type=Path)
    parser.add_argument("--checkpoint", type=Path, help="the Hugging Face folder that an f16 package was made from")
    arguments = parser.parse_args()
    model = ct.models.MLModel(str(arguments.package), skip_model_load=True)
    spec = model.get_spec()
    check_description(spec)
    program = check_program(spec, model.weights_dir)
    if arguments.checkpoint and program is not None:
        check_weights(program, arguments.checkpoint)
    print("no faults" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
