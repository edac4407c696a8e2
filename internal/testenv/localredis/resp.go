package localredis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// ReplyError is an error reply of the server.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// None is the reply of a server that has no such value.
type None struct{}

func (None) String() string { return "(nil)" }

// Do sends one command over a connection of its own and returns the reply: a string, an int64,
// None{}, or a []any of these. It logs in first if the server was started with --requirepass.
// It uses no client library, so that none can change the command or the reply. It blocks until
// the reply arrives or ctx ends.
func (s *Server) Do(ctx context.Context, args ...string) (any, error) {
	if s.password != "" {
		return do(ctx, s.Addr(), []string{"AUTH", s.password}, args)
	}
	return do(ctx, s.Addr(), args)
}

// Do is Server.Do for any server without a password, at addr ("host:port").
func Do(ctx context.Context, addr string, args ...string) (any, error) { return do(ctx, addr, args) }

// do sends commands one after the other, and returns the last reply.
func do(ctx context.Context, addr string, commands ...[]string) (v any, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	r := bufio.NewReader(conn)
	for _, args := range commands {
		if err = send(conn, args...); err == nil {
			v, err = readReply(r)
		}
		if err != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
	return v, nil
}

// Text returns a reply as text: numbers in decimal, "(nil)" for None, one line per
// element of an array.
func Text(v any) string {
	all, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	lines := make([]string, len(all))
	for i := range all {
		lines[i] = Text(all[i])
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
		return nil, errors.New("localredis: the server replied with an empty line")
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
		return nil, fmt.Errorf("localredis: unreadable reply %q", line)
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
	return nil, fmt.Errorf("localredis: unreadable reply %q", line)
}
