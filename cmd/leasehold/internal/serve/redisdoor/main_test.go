package redisdoor

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// TestMain runs the tests, or the server of TestManyIdleConnections.
func TestMain(m *testing.M) {
	if os.Getenv(idleVar) != "" {
		serveIdle()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child.Goroutine))
}

// engines are a store in this process, whose commands are carried out by the goroutine that reads
// them, and two that could be elsewhere, whose commands are carried out side by side. One of these
// has a goroutine for each.
func engines() map[string]store.Engine {
	return map[string]store.Engine{"in this process": memstore.New(nil).Engine(), "elsewhere": elsewhere(), "started": &starting{Engine: elsewhere()}}
}

// starting is a store whose calls are started. Once they are flushed, it answers them in any order.
type starting struct {
	store.Engine
	mu      sync.Mutex
	started []func()
}

func (s *starting) StartAcquire(ctx context.Context, r store.AcquireRequest, done func(store.Grant, error)) bool {
	return s.start(func() { done(s.Engine.Acquire(ctx, r)) })
}

func (s *starting) StartRelease(ctx context.Context, r store.ReleaseRequest, done func(error)) bool {
	return s.start(func() { done(s.Engine.Release(ctx, r)) })
}

func (s *starting) start(call func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, call)
	return true
}

func (s *starting) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	rand.Shuffle(len(s.started), func(i, j int) { s.started[i], s.started[j] = s.started[j], s.started[i] })
	for _, call := range s.started {
		go call()
	}
	s.started = nil
}

type distant struct{ store.Engine }

// elsewhere returns a store whose answers could take time.
func elsewhere() store.Engine { return distant{memstore.New(nil).Engine()} }

func (d distant) Caps() store.Caps {
	c := d.Engine.Caps()
	c.Reach = "network"
	return c
}

// open opens a door, by default to a store in memory, and returns its address.
func open(t testing.TB, o Options) (address string, st *store.Store) {
	t.Helper()
	if o.Store == nil {
		o.Store = memstore.New(nil)
		t.Cleanup(func() { o.Store.Close() })
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- New(o).Serve(ctx, l, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), o.Store
}

// client is a client of a door.
type client struct {
	t  testing.TB
	nc net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &client{t, nc, bufio.NewReader(nc)}
}

// encode returns a command as bytes.
func encode(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func (c *client) send(raw string) {
	c.t.Helper()
	if _, err := io.WriteString(c.nc, raw); err != nil {
		c.t.Fatal(err)
	}
}

// receive returns the next reply as redis-cli shows it, or why there is none.
func (c *client) receive() string {
	c.nc.SetReadDeadline(time.Now().Add(20 * time.Second))
	s, err := readReply(c.in)
	if err != nil {
		return "closed: " + err.Error()
	}
	return s
}

func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	rest := strings.TrimSuffix(line[1:], "\r\n")
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return "(error) " + rest, nil
	case ':':
		return "(integer) " + rest, nil
	case '_':
		return "(nil)", nil
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "(nil)", err
		}
		b := make([]byte, n+2)
		_, err = io.ReadFull(in, b)
		return strconv.Quote(string(b[:n])), err
	case '*', '%':
		n, err := strconv.Atoi(rest)
		if line[0] == '%' {
			n *= 2
		}
		var all []string
		for range n {
			s, err := readReply(in)
			if err != nil {
				return "", err
			}
			all = append(all, s)
		}
		return "[" + strings.Join(all, " ") + "]", err
	}
	return "", fmt.Errorf("no reply: %q", line)
}

// says sends a command, whose words are separated by spaces, and returns the reply.
func (c *client) says(words ...string) string {
	c.t.Helper()
	if len(words) == 1 {
		words = strings.Fields(words[0])
	}
	c.send(encode(words...))
	return c.receive()
}

// wants checks the beginning of the reply to a command.
func (c *client) wants(want string, words ...string) {
	c.t.Helper()
	if got := c.says(words...); got != want && !(strings.HasPrefix(want, "(error)") && strings.HasPrefix(got, want)) {
		c.t.Errorf("%q: got %s, want %s", words, got, want)
	}
}

// rightsFile returns the rights of clients, whose tokens are their names.
func rightsFile(t *testing.T, clients ...string) *rights.File {
	t.Helper()
	var all []string
	for _, c := range clients {
		name, rules, _ := strings.Cut(c, " ")
		all = append(all, fmt.Sprintf(`{"name":"%s","token_sha256":["%x"],%s}`, name, sha256.Sum256([]byte(name)), rules))
	}
	path := filepath.Join(t.TempDir(), "rights.json")
	if err := os.WriteFile(path, []byte(`{"clients":[`+strings.Join(all, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := rights.Open(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return f
}
