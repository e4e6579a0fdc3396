# The commands of daily work. Each is one line of shell; what is longer lives in scripts/.

.DEFAULT_GOAL := help
.PHONY: help build console demo test lint fmt generate bench advisories clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: console ## the release binary, with its console
	cargo build --release --locked --package danlu

console: ## the console's files, which the binary serves (web/dist)
	scripts/console.sh

demo: ## build, start the platform, train digits on 2 workers x 2 ranks, say where everything is
	scripts/demo.sh

test: ## everything CI checks: format, lints, layers, licences, all tests, generated files
	scripts/test.sh

lint: ## the quick part of it
	scripts/test.sh format layers files words deny shell clippy

fmt: ## format the Rust code
	cargo fmt --all

generate: ## renew the generated files of docs/
	cargo xtask generate

bench: ## figures of Danlu beside Slurm and HyperQueue
	bench/run.sh

advisories: ## look dependencies up in the advisory database (fetches it with git, so it needs the internet)
	cargo install --locked cargo-deny && cargo deny check advisories

clean: ## remove what was built here; caches outside the clone stay
	cargo clean
	rm -rf .cache web/dist web/node_modules web/pictures
