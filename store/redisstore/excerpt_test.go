package redisstore

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// An error reply of any size is quoted in one short line, in every error that is made of it.
func TestLongErrorRepliesAreCut(t *testing.T) {
	for _, begin := range []string{"ERR ", "NOPERM ", "MOVED 1 127.0.0.1:1", "TRYAGAIN ", "-", "\x1b[2J\n"} {
		v := resp.Value{Kind: '-', Text: []byte(begin + strings.Repeat("x", 60_000))}
		if text := (resp.Value{Kind: '*', List: []resp.Value{v, v, v}}).String(); len(text) > 600 {
			t.Errorf("a list of long replies is described in %d bytes, want at most 600", len(text))
		}
		for way, err := range map[string]error{"reply": script.ReplyTo(v).Err, "refusal": resp.ErrorOf(v)} {
			if err == nil {
				t.Fatalf("%s %q: no error", way, begin)
			}
			if text := err.Error(); len(text) > 600 || strings.ContainsAny(text, "\x1b\n") || !strings.Contains(text, "xxx") {
				t.Errorf("%s %q: %d bytes: %.100q, want at most 600 of one line", way, begin, len(text), text)
			}
		}
	}
}
