package zktest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// The jar files that run scripts with Curator. They name the others that they need.
var curatorJars = []string{"/usr/share/java/bsh.jar", "/usr/share/java/curator-recipes.jar"}

// Curator is a process that runs a script in the Java of BeanShell, with Apache Curator.
type Curator struct {
	In   io.Writer // the standard input
	Out  io.Reader // the standard output, until the process ends
	proc *child.Process
	ends []io.Closer
}

// StartCurator starts a script. The caller must call Close.
func StartCurator(script string, args ...string) (*Curator, error) {
	for _, jar := range curatorJars {
		if _, err := os.Stat(jar); err != nil {
			return nil, errors.New(`zktest: Apache Curator or BeanShell is not installed, and these tests need real ones. Install them and run again:
	Debian, Ubuntu   sudo apt-get install -y libcurator-recipes-java libbsh-java
or run "make test", which does this where it can`)
		}
	}
	java, err := command(Options{})
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, print, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), feed.Close())
	}
	c := &Curator{In: feed, Out: out, ends: []io.Closer{feed, out}}
	main := []string{"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(curatorJars, ":"), "bsh.Interpreter", script}
	cmd := exec.Command(java[0], append(main, args...)...)
	cmd.Stdin, cmd.Stdout = in, print
	c.proc, err = child.Start(cmd)
	err = errors.Join(err, in.Close(), print.Close()) // the process has its own
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("zktest: start Curator: %w", err)
	}
	return c, nil
}

// Close kills the process.
func (c *Curator) Close() {
	if c.proc != nil {
		c.proc.Kill()
	}
	for _, e := range c.ends {
		e.Close()
	}
}
