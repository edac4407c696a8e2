package locks

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
	_ "github.com/leasehold-dev/leasehold/store/filestore" // the scheme file
)

// The address of a kind of File is a directory.

var inFile = inEngine{
	Kind: Kind{Name: "leasehold-file", Label: "Leasehold, a file", Engine: File},
	url:  func(dir string) string { return "file:" + filepath.Join(dir, "locks") },
}

// gofrsFlock waits in the kernel: flock(2) has no token, and no end but that of the process.
var gofrsFlock = Kind{
	Name: "gofrs-flock", Label: "gofrs/flock", Role: Peer, Engine: File, Nodes: 1, Module: "github.com/gofrs/flock",
	Open: func(_ context.Context, addrs []string) (Client, error) {
		pair := func(name string) load.Pair { return gofrsPair{flock.New(filepath.Join(addrs[0], name))} }
		return client{pair, func() {}}, nil
	},
}

type gofrsPair struct{ f *flock.Flock }

func (p gofrsPair) Lock(context.Context) error   { return p.f.Lock() }
func (p gofrsPair) Unlock(context.Context) error { return p.f.Unlock() }

// flockCommand is flock(1), which scripts use. Each turn starts it and the command that
// holds the lock.
var flockCommand = Kind{
	Name: "flock", Label: "flock(1), started for each turn", Role: Peer, Engine: File, Nodes: 1,
	Open: func(_ context.Context, addrs []string) (Client, error) {
		program, err := exec.LookPath("flock")
		if err != nil {
			return nil, err
		}
		pair := func(name string) load.Pair {
			return &flockPair{program: program, file: filepath.Join(addrs[0], name)}
		}
		return client{pair, func() {}}, nil
	},
}

type flockPair struct {
	program, file string
	held          *exec.Cmd
	end           io.Closer // ends the command that holds the lock
}

func (p *flockPair) Lock(ctx context.Context) error {
	c := exec.CommandContext(ctx, p.program, p.file, "sh", "-c", "echo held; read end")
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		in.Close()
		c.Wait()
		return fmt.Errorf("flock said %q: %w", said, err)
	}
	p.held, p.end = c, in
	return nil
}

// Unlock ends the command. It ends with an error, since it reads the end of its input.
func (p *flockPair) Unlock(context.Context) error {
	p.end.Close()
	p.held.Wait()
	return nil
}
