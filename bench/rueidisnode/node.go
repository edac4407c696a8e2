package rueidisnode

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// node implements driver.Node. The client of rueidis sends the calls of all goroutines in
// one pipeline. Its calls block, so each has a goroutine.
type node struct {
	addr   string
	client rueidis.Client
}

// Addr implements driver.Node.
func (n *node) Addr() string { return n.addr }

// Flush implements driver.Node.
func (n *node) Flush() {}

// Put implements driver.Node.
func (n *node) Put(c driver.Call[*script.Command]) error {
	if c.Next != nil || c.Leases > 1 {
		return errors.New("only plain calls are measured")
	}
	command := c.Payload
	words, err := wordsOf(command.Bytes)
	if err != nil {
		return err
	}
	go func() {
		v := n.do(words)
		if v.Kind == '-' && v.Code() == resp.NoScript {
			if words, err = wordsOf(command.ByText(nil)); err == nil {
				v = n.do(words)
			}
		}
		c.To.Receive(0, c.Tag, script.ReplyTo(v).Answer(command.Script))
	}()
	return nil
}

func (n *node) do(words []string) resp.Value {
	m, err := n.client.Do(context.Background(), n.client.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil {
		if said, ok := rueidis.IsRedisErr(err); ok && !said.IsNil() {
			return resp.Value{Kind: '-', Text: []byte(said.Error())}
		} else if !ok {
			return resp.Value{Kind: '-', Text: []byte("ERR " + err.Error())}
		}
	}
	return valueOf(m)
}

// wordsOf returns the words of an encoded command.
func wordsOf(encoded []byte) ([]string, error) {
	number := func(kind byte) (int, error) {
		line, rest, ok := bytes.Cut(encoded, []byte("\r\n"))
		if !ok || len(line) < 2 || line[0] != kind {
			return 0, errors.New("a command that is not encoded as expected")
		}
		encoded = rest
		return strconv.Atoi(string(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		words[i], encoded = string(encoded[:size]), encoded[size+2:]
	}
	return words, nil
}

// valueOf converts a reply.
func valueOf(m rueidis.RedisMessage) resp.Value {
	switch {
	case m.IsNil():
		return resp.Value{Kind: '$', Null: true}
	case m.IsInt64():
		n, _ := m.AsInt64()
		return resp.Value{Kind: ':', Num: n}
	case m.IsArray():
		all, _ := m.ToArray()
		v := resp.Value{Kind: '*', List: make([]resp.Value, len(all))}
		for i, e := range all {
			v.List[i] = valueOf(e)
		}
		return v
	}
	text, _ := m.ToString()
	return resp.Value{Kind: '$', Text: []byte(text)}
}
