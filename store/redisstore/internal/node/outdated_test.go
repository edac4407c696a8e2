package node

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// A connection that is outdated, since its server has got slots or the channel's slot has
// moved, is replaced when all requests on it are answered. No caller gets an error. Requests
// made meanwhile wait for the next connection.
func TestReplacedConnectionLosesNoAnswer(t *testing.T) {
	for _, replace := range []func(*Session){
		func(w *Session) { w.NoChannel = true; w.Node.Resubscribe() },
		func(w *Session) {
			w.handlePush(resp.Value{Kind: '>', List: []resp.Value{{Kind: '$', Text: []byte("sunsubscribe")}, {Kind: '$'}, {Kind: ':'}}})
		},
	} {
		n, server := bareNode(t)
		in := bufio.NewReader(server)
		ask := func() Poll {
			p := make(Poll, 1)
			if err := n.Enqueue(Call{Command: PingCommand, Timeout: time.Minute, Poll: p}, false); err != nil {
				t.Fatal(err)
			}
			return p
		}
		answer := ask()
		for range strings.Count(string(PingCommand.Bytes), "\n") {
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		replace(n.Pipe().Session().(*Session))
		later := ask()
		if _, err := server.Write([]byte("+PONG\r\n")); err != nil {
			t.Fatal(err)
		}
		if a := <-answer; a.Outcome != store.Granted {
			t.Errorf("the request under way: %v (%v), want %v", a.Outcome, a.Err, store.Granted)
		}
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("the old connection carries %q (%v), want nothing more", rest, err)
		}
		if a := <-later; a.Sent { // there is no server for the next connection
			t.Errorf("a later request was sent: %v", a.Err)
		}
	}
}
