package redisstore_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeSentinel names a master that the test chooses, as real sentinels do only for a moment or
// when they are cut off.
type fakeSentinel struct {
	listener net.Listener
	all      sync.WaitGroup

	mu     sync.Mutex
	master string
	epoch  int
	// sticky makes each connection keep the answer of the time when it began.
	sticky bool
	began  int // connections
	asked  int // how often for the master
	conns  []net.Conn
}

func newFakeSentinel(t *testing.T, master string, epoch int) *fakeSentinel {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveSentinel(t, l, master, epoch)
}

func serveSentinel(t *testing.T, l net.Listener, master string, epoch int) *fakeSentinel {
	t.Helper()
	f := &fakeSentinel{listener: l, master: master, epoch: epoch}
	f.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.began++
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			f.all.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(f.Close)
	return f
}

func (f *fakeSentinel) Addr() string { return f.listener.Addr().String() }

func (f *fakeSentinel) Close() {
	f.listener.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.all.Wait()
}

func (f *fakeSentinel) name(master string, epoch int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.master, f.epoch = master, epoch
}

func (f *fakeSentinel) stick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sticky = true
}

func (f *fakeSentinel) seen() (connections, questions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.began, f.asked
}

func (f *fakeSentinel) serve(c net.Conn) {
	defer c.Close()
	f.mu.Lock()
	first, firstEpoch, sticky := f.master, f.epoch, f.sticky
	f.mu.Unlock()
	in := bufio.NewReader(c)
	for {
		words, err := sentinelCommand(in)
		if err != nil {
			return
		}
		f.mu.Lock()
		master, epoch := f.master, f.epoch
		if sticky {
			master, epoch = first, firstEpoch
		}
		reply := "-ERR what?\r\n"
		switch strings.ToUpper(strings.Join(words[:min(2, len(words))], " ")) {
		case "SENTINEL MASTER":
			reply = array("name", "mymaster", "config-epoch", strconv.Itoa(epoch))
		case "SENTINEL GET-MASTER-ADDR-BY-NAME":
			host, port, _ := net.SplitHostPort(master)
			reply = array(host, port)
			f.asked++
		}
		f.mu.Unlock()
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func array(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func sentinelCommand(in *bufio.Reader) (words []string, err error) {
	number := func() (n int, err error) {
		line, err := in.ReadString('\n')
		if err != nil || len(line) < 2 {
			return 0, io.ErrUnexpectedEOF
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	for range n {
		size, err := number()
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		words = append(words, string(b[:size]))
	}
	return words, err
}
