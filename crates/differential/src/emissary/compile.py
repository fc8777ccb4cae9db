"""Compiles sets of objects with Emissary's own compiler.

Arguments: a folder for certificates, a file with the sets, a file to write. A set is a line of JSON with a number and a list of
Kubernetes objects; what is written is a line for each set, with the same number, the static resources of Envoy's configuration, the
errors that Emissary posted, the seconds that it took, and the most memory that the process has had so far, in bytes.
"""

import json
import logging
import os
import resource
import sys
import time

from ambassador import IR, Config, EnvoyConfig
from ambassador.fetch import ResourceFetcher
from ambassador.utils import SecretHandler


def compile_set(objects, folder, logger):
    # What the watcher hands over: objects by their kinds, with its own names for kinds that are not Emissary's.
    names = {"Secret": "secret", "Service": "service"}
    snapshot = {}
    for item in objects:
        kind = item["kind"]
        if kind != "EndpointSlice":
            snapshot.setdefault(names.get(kind, kind), []).append(item)
    text = json.dumps({"Kubernetes": snapshot, "Consul": {}})
    begun = time.perf_counter()
    config = Config(schema_dir_path=folder)
    fetcher = ResourceFetcher(logger, config)
    fetcher.parse_watt(text)
    config.load_all(fetcher.sorted())
    secrets = SecretHandler(logger, folder, folder, "0")
    ir = IR(config, file_checker=os.path.exists, secret_handler=secrets)
    _, resources, _ = EnvoyConfig.generate(ir).split_config()
    seconds = time.perf_counter() - begun
    # Linux counts it in KiB.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    errors = [entry["error"] for entries in config.errors.values() for entry in entries]
    return {"resources": resources["static_resources"], "errors": errors, "seconds": seconds, "memory": memory}


def main():
    certificates, sets, compiled = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    logger = logging.getLogger("differential")
    with open(sets) as lines, open(compiled, "w") as answers:
        for line in lines:
            given = json.loads(line)
            folder = os.path.join(certificates, str(given["number"]))
            os.makedirs(folder, exist_ok=True)
            try:
                made = compile_set(given["objects"], folder, logger)
            except Exception as error:
                made = {"failed": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps({"number": given["number"], **made}, default=str) + "\n")


main()
