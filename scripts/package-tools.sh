# Sourced by the scripts that make packages, with work set to a directory and go to the Go
# command: makes the tools that .goreleaser.yaml names, in the versions of the Makefile.
# SYFT lists the modules of the archives, and COSIGN signs.

tools() {
	GOBIN=$work/tools "$go" install "github.com/anchore/syft/cmd/syft@$SYFT"
	GOBIN=$work/tools "$go" install "github.com/sigstore/cosign/${COSIGN%%.*}/cmd/cosign@$COSIGN"
	PATH=$work/tools:$PATH
}

goreleaser() { "$go" run "github.com/goreleaser/goreleaser/v2@$GORELEASER" "$@"; }
