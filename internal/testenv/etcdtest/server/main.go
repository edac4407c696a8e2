// The command server is etcd, for tests that need a current version. It is a module of
// its own, outside the workspace, so that nothing else gets its dependencies.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
