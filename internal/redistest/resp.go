package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ReplyError is an error the server answered with.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// None is the answer of a server that has no value to give.
type None struct{}

func (None) String() string { return "(nil)" }

// Do sends one command over a connection of its own and returns the answer: a
// string, an int64, None{}, or a []any of these. It logs in first when the server
// was started with --requirepass. It does not go through any client library,
// so what it sees is what is there. It blocks until the answer or the end of
// ctx.
func (s *Server) Do(ctx context.Context, args ...string) (any, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	r := bufio.NewReader(conn)
	if s.password != "" {
		if err := send(conn, "AUTH", s.password); err != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
		if _, err := readReply(r); err != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
	if err := send(conn, args...); err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	v, err := readReply(r)
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return v, nil
}

// Text is Do for a server that is up: the answer as text (numbers in decimal,
// "(nil)" for None, one line per element of an array). An error fails the test
// at once.
func (s *Server) Text(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := s.Do(ctx, args...)
	if err != nil {
		t.Fatalf("redistest: %s at %s: %v", strings.Join(args, " "), s.Addr(), err)
	}
	return text(v)
}

// Keys returns all keys of the server, sorted.
func (s *Server) Keys(t testing.TB) []string {
	t.Helper()
	all := s.Text(t, "KEYS", "*")
	if all == "" {
		return nil
	}
	keys := strings.Split(all, "\n")
	slices.Sort(keys)
	return keys
}

func text(v any) string {
	all, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	lines := make([]string, len(all))
	for i := range all {
		lines[i] = text(all[i])
	}
	return strings.Join(lines, "\n")
}

func send(w io.Writer, args ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("redistest: the server answered with an empty line")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, ReplyError(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("redistest: unreadable answer %q", line)
	}
	switch kind {
	case ':':
		return n, nil
	case '$':
		if n < 0 {
			return None{}, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	case '*':
		if n < 0 {
			return None{}, nil
		}
		all := make([]any, n)
		for i := range all {
			// An error within an array is an element, not the end of it.
			v, err := readReply(r)
			var refused ReplyError
			if errors.As(err, &refused) {
				v, err = refused, nil
			}
			if err != nil {
				return nil, err
			}
			all[i] = v
		}
		return all, nil
	}
	return nil, fmt.Errorf("redistest: unreadable answer %q", line)
}
