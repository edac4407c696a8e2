package resp

import (
	"fmt"
	"strings"
	"testing"
)

func TestCodeOfErrorReply(t *testing.T) {
	tested := map[Code]bool{}
	for reply, want := range map[string]Code{
		"WRONGPASS invalid username-password pair or user is disabled.":                           WrongPassword,
		"NOAUTH Authentication required.":                                                         NoAuth,
		"ERR AUTH <password> called without any password configured for the default user.":        NoPassword,
		"OOM command not allowed when used memory > 'maxmemory'.":                                 OutOfMemory,
		"READONLY You can't write against a read only replica.":                                   ReadOnly,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist": CannotSave,
		"NOREPLICAS Not enough good replicas to write.":                                           TooFewReplicas,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":        MasterDown,
		"ERR This instance has cluster support disabled":                                          NoCluster,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":  Busy,
		"ERR unknown command 'HELLO', with args beginning with: '3' ":                             UnknownCommand,
		"ERR no":                            OtherError,
		"WRONGTYPE Operation against a key": WrongType,
		"ERR Error running script (call to f_x): @user_script:1: WRONGTYPE Operation against a key": WrongType,
		"ERR Error running script: The user executing the script can't run this command":            Denied,
		"NOPERM this user has no permissions to run the 'get' command":                              Denied,
		"LOADING Redis is loading the dataset in memory":                                            Loading,
		"MOVED 3999 127.0.0.1:6381": Moved,
		"MOVED":                     OtherError,
		"ASK 1 host:6381":           Ask,
		"TRYAGAIN Multiple keys request during rehashing of slot":                     TryAgain,
		"CLUSTERDOWN Hash slot not served":                                            ClusterDown,
		"ERR Script attempted to access a non local key in a cluster node":            KeyMoved,
		"NOSCRIPT No matching script.":                                                NoScript,
		"ERR a script said NOSCRIPT":                                                  OtherError,
		"DENIED Redis is running in protected mode because protected mode is enabled": Protected,
		"ERR max number of clients reached":                                           TooManyClients,
	} {
		tested[want] = true
		v := Value{Kind: '-', Text: []byte(reply)}
		if got := v.Code(); got != want {
			t.Errorf("%q has code %d, want %d", reply, got, want)
		}
		if got := CodeOf(fmt.Errorf("node: %w", ErrorOf(v))); got != want {
			t.Errorf("%q has code %d as an error, want %d", reply, got, want)
		}
	}
	for _, k := range codes {
		if !tested[k.code] {
			t.Errorf("no reply here has the code %d (%s)", k.code, k.text)
		}
	}
	if got := NotUp().Code(); got != Loading {
		t.Errorf("a server that is not up has code %d, want %d", got, Loading)
	}
	if got := (Value{Kind: '$', Text: []byte("LOADING")}).Code(); got != NoError {
		t.Errorf("a string has code %d, want %d", got, NoError)
	}
	if got := CodeOf(fmt.Errorf("LOADING")); got != NoError {
		t.Errorf("an error that is no reply has code %d, want %d", got, NoError)
	}
	long := ErrorOf(Value{Kind: '-', Text: []byte(strings.Repeat("x", 60_000))})
	if len(long.Error()) > 310 || len(long.Text()) != 60_000 {
		t.Errorf("a long reply is quoted in %d bytes and kept in %d, want at most 310 and 60000", len(long.Error()), len(long.Text()))
	}
}

// A user may be denied a command, or a key of one.
func TestDeniesCommand(t *testing.T) {
	for reply, want := range map[string]bool{
		"NOPERM this user has no permissions to run the 'get' command":                        true,
		"NOPERM User u has no permissions to run the 'get' command":                           true,
		"NOPERM this user has no permissions to access one of the keys used as arguments":     false,
		"NOPERM No permissions to access a key":                                               false,
		"NOPERM this user has no permissions to access one of the channels used as arguments": false,
		"ERR unable to run this": false,
	} {
		if got := (Value{Kind: '-', Text: []byte(reply)}).DeniesCommand(); got != want {
			t.Errorf("%q denies a command: %v, want %v", reply, got, want)
		}
	}
}
