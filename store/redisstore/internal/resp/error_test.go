package resp

import (
	"fmt"
	"strings"
	"testing"
)

func TestCodeOfErrorReply(t *testing.T) {
	for reply, want := range map[string]Code{
		"ERR no":                            OtherError,
		"WRONGTYPE Operation against a key": WrongType,
		"ERR Error running script (call to f_x): @user_script:1: WRONGTYPE Operation against a key": WrongType,
		"ERR Error running script: The user executing the script can't run this command":            Denied,
		"NOPERM this user has no permissions to run the 'get' command":                              Denied,
		"LOADING Redis is loading the dataset in memory":                                            Loading,
		"MOVED 3999 127.0.0.1:6381": Moved,
		"MOVED":                     OtherError,
		"ASK 1 host:6381":           Ask,
		"TRYAGAIN Multiple keys request during rehashing of slot":          TryAgain,
		"CLUSTERDOWN Hash slot not served":                                 ClusterDown,
		"ERR Script attempted to access a non local key in a cluster node": KeyMoved,
		"NOSCRIPT No matching script.":                                     NoScript,
		"ERR a script said NOSCRIPT":                                       OtherError,
	} {
		v := Value{Kind: '-', Text: []byte(reply)}
		if got := v.Code(); got != want {
			t.Errorf("%q has code %d, want %d", reply, got, want)
		}
		if got := CodeOf(fmt.Errorf("node: %w", ErrorOf(v))); got != want {
			t.Errorf("%q has code %d as an error, want %d", reply, got, want)
		}
	}
	if got := (Value{Kind: '$', Text: []byte("LOADING")}).Code(); got != NoError {
		t.Errorf("a string has code %d", got)
	}
	if got := CodeOf(fmt.Errorf("LOADING")); got != NoError {
		t.Errorf("an error that is no reply has code %d", got)
	}
	long := ErrorOf(Value{Kind: '-', Text: []byte(strings.Repeat("x", 60_000))})
	if len(long.Error()) > 310 || len(long.Text()) != 60_000 {
		t.Errorf("a long reply is quoted in %d bytes and kept in %d", len(long.Error()), len(long.Text()))
	}
}
