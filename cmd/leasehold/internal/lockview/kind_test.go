package lockview

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// All holders of a lock are shown, each with its slot and its permits, and who broke one of
// their leases.
func TestKindsAreShown(t *testing.T) {
	now := time.Now()
	several := func(k store.Kind, held ...store.Holding) store.State {
		return store.State{Name: "a", Held: true, Kind: k, Holders: held, Holder: held[0].Holder, Token: held[0].Token, ExpiresIn: held[0].ExpiresIn}
	}
	one := store.Holding{Holder: store.Holder{Owner: "o", Host: "h", PID: 7}, Token: 3, ExpiresIn: time.Second, Weight: 1}
	two := store.Holding{Holder: store.Holder{Owner: "p", Host: "i", PID: 8, Purpose: "q", Broken: true}, Token: 4, ExpiresIn: 2 * time.Second, Weight: 2, Slot: 1}
	writer := one
	writer.Weight = store.ReadWriteLimit
	semaphore := several(store.Semaphore(4), one, two)
	wide := two
	wide.Holder.Broken = false
	semaphore.Broken = &store.Broken{Owner: "p", Token: 4, By: "me\x1b", Reason: "it hangs", At: now, Now: true}
	at := now.Local().Format(time.RFC3339)
	for _, c := range []struct {
		state             store.State
		shown, list, json string
	}{
		{semaphore,
			"lock      a\n" +
				"kind      semaphore of 4, permits in use: 3 of 4\n" +
				"holder 1  slot 0, 1 of 4 permits\n" +
				"held by   h pid 7\n" +
				"owner     o\n" +
				"expires   in 1s unless renewed\n" +
				"token     3\n" +
				"holder 2  slot 1, 2 of 4 permits\n" +
				"held by   i pid 8 (q)\n" +
				"owner     p\n" +
				"expires   in 2s, or when its holder releases it: it was broken and cannot be renewed\n" +
				"token     4\n" +
				"broken    the lease of holder 2 (token 4), by \"me\\x1b\" at " + at + ", without waiting for the holder: it hangs\n",
			"NAME  KIND                    HOLDER       HELD FOR  EXPIRES IN  WAITERS  TOKEN\n" +
				"a     slot 0, 1 of 4 permits  h pid 7      -         1s          -        3\n" +
				"a     slot 1, 2 of 4 permits  i pid 8 (q)  -         2s                   4\n",
			`{"name":"a","held":true,"owner":"o","host":"h","pid":7,"expires_in_ms":1000,"token":3,"kind":"semaphore","permits":4,"holders":[` +
				`{"owner":"o","host":"h","pid":7,"expires_in_ms":1000,"token":3,"slot":0,"weight":1},` +
				`{"owner":"p","host":"i","pid":8,"purpose":"q","lease_broken":true,"expires_in_ms":2000,"token":4,"slot":1,"weight":2}],` +
				`"broken":{"owner":"p","token":4,"by":"me\u001b","reason":"it hangs","at":"` + now.UTC().Format(time.RFC3339Nano) + `","now":true}}`},
		{several(store.ReadWrite, writer),
			"lock      a\n" +
				"kind      read-write lock\n" +
				"holder 1  writer\n" +
				"held by   h pid 7\n" +
				"owner     o\n" +
				"expires   in 1s unless renewed\n" +
				"token     3\n",
			"NAME  KIND    HOLDER   HELD FOR  EXPIRES IN  WAITERS  TOKEN\n" +
				"a     writer  h pid 7  -         1s          -        3\n",
			`{"name":"a","held":true,"owner":"o","host":"h","pid":7,"expires_in_ms":1000,"token":3,"kind":"read-write","holders":[` +
				`{"owner":"o","host":"h","pid":7,"expires_in_ms":1000,"token":3,"slot":0,"mode":"writer"}]}`},
		{several(store.Kind{}, one, wide), // a semaphore that was resized to one permit
			"lock      a\n" +
				"kind      mutex, permits in use: 3 of 1\n" +
				"holder 1  slot 0, 1 of 1 permit\n" +
				"held by   h pid 7\n" +
				"owner     o\n" +
				"expires   in 1s unless renewed\n" +
				"token     3\n" +
				"holder 2  slot 1, 2 of 1 permit\n" +
				"held by   i pid 8 (q)\n" +
				"owner     p\n" +
				"expires   in 2s unless renewed\n" +
				"token     4\n",
			"NAME  KIND                   HOLDER       HELD FOR  EXPIRES IN  WAITERS  TOKEN\n" +
				"a     slot 0, 1 of 1 permit  h pid 7      -         1s          -        3\n" +
				"a     slot 1, 2 of 1 permit  i pid 8 (q)  -         2s                   4\n",
			`{"name":"a","held":true,"owner":"o","host":"h","pid":7,"expires_in_ms":1000,"token":3,"kind":"mutex","holders":[` +
				`{"owner":"o","host":"h","pid":7,"expires_in_ms":1000,"token":3,"slot":0,"weight":1},` +
				`{"owner":"p","host":"i","pid":8,"purpose":"q","expires_in_ms":2000,"token":4,"slot":1,"weight":2}]}`},
		{store.State{Name: "a", Broken: &store.Broken{Owner: "p", Token: 4}},
			"lock     a\nheld by  nobody\nbroken   an earlier lease (token 4), by somebody\n",
			"NAME  KIND  HOLDER  HELD FOR  EXPIRES IN  WAITERS  TOKEN\n",
			`{"name":"a","held":false,"broken":{"owner":"p","token":4,"now":false}}`},
	} {
		var b strings.Builder
		if err := WriteState(&b, c.state, false, now); err != nil || b.String() != c.shown {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), c.shown)
		}
		b.Reset()
		if err := writeTable(&b, []store.State{c.state}, now); err != nil || b.String() != c.list {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), c.list)
		}
		got, err := json.Marshal(JSON(c.state))
		if err != nil || string(got) != c.json {
			t.Errorf("%v\n%s\nwant\n%s", err, got, c.json)
		}
	}
}
