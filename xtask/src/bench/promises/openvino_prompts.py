"""Times OpenVINO GenAI on prompts: openvino_prompts.py GGUF THREADS REPEATS LENGTH... prints seconds as one line of JSON."""

import json
import sys
import time

import numpy
import openvino
import openvino_genai

path, threads, repeats, *lengths = sys.argv[1:]
begin = time.perf_counter()
pipeline = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=int(threads))
loaded = time.perf_counter() - begin
config = openvino_genai.GenerationConfig()
config.max_new_tokens, config.do_sample, config.ignore_eos = 1, False, True
seconds, draw = {}, numpy.random.default_rng(1)
for length in lengths:
    times = []
    # The first one warms up.
    for _ in range(int(repeats) + 1):
        tokens = openvino.Tensor(draw.integers(100, 40_000, (1, int(length))))
        begin = time.perf_counter()
        pipeline.generate(tokens, config)
        times.append(time.perf_counter() - begin)
    seconds[length] = times[1:]
print(json.dumps({"seconds": seconds, "loaded": loaded}))
