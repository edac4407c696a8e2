package redisstore

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
	for _, replace := range []func(*session){
		func(w *session) { w.noChannel = true; resubscribe(w.n) },
		func(w *session) {
			w.handlePush(resp.Value{Kind: '>', List: []resp.Value{{Kind: '$', Text: []byte("sunsubscribe")}, {Kind: '$'}, {Kind: ':'}}})
		},
	} {
		n, server := bareNode(t)
		in := bufio.NewReader(server)
		ask := func() poll {
			p := make(poll, 1)
			if err := n.put(call{command: pingCommand, timeout: time.Minute, look: p}, false); err != nil {
				t.Fatal(err)
			}
			return p
		}
		answer := ask()
		for range strings.Count(string(pingCommand.Bytes), "\n") {
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		replace(n.Pipe().Session().(*session))
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
