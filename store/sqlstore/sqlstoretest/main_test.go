package sqlstoretest

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := withServers(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func withServers(m *testing.M) (code int) {
	var starting sync.WaitGroup
	for _, on := range beds {
		starting.Go(func() {
			var err error
			if on.server, err = on.launch(on.quick...); err != nil {
				fmt.Fprintln(os.Stderr, err)
				on.server = nil
			}
		})
	}
	starting.Wait()
	for _, on := range beds {
		if on.server == nil {
			code = 1
			continue
		}
		defer on.server.Close()
	}
	if code != 0 {
		return code
	}
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	return m.Run()
}
