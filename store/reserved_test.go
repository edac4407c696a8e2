package store

import (
	"errors"
	"strings"
	"testing"
)

// Names of keys that stores use for themselves are refused. Names that only resemble them,
// such as those with a Redis hash tag, are not.
func TestReservedNames(t *testing.T) {
	for name, reserved := range map[string]bool{
		"leasehold:node": true, "leasehold:": true, "leasehold:anything": true,
		"{x}:token": true, "{x}:line": true, "{x}:waits": true, "{x}:fence": true, "{x}:made": true,
		"{x}:gone:owner": true, "{x}:place:owner": true, "{x}:gone:": true,
		"{}:token": true, "{a}:b}:token": true, "{a}:token}:b}:line": true, "{{a}:token}:token": true,

		"leasehold": false, "leasehold/node": false, "my leasehold:node": false, "Leasehold:x": false,
		"{x}": false, "{x}:": false, "{x}:lock": false, "{x}:tokens": false, "{x}token": false, "{x:token": false,
		"x}:token": false, "a{x}:token": false, "{x}:gone": false, "{x}:place": false, "{x}:a:token": false, "{order}:42": false,
	} {
		err := CheckName(name)
		if reserved != errors.Is(err, ErrInvalid) || reserved != (err != nil) {
			t.Errorf("CheckName(%q) = %v, want ErrInvalid: %v", name, err, reserved)
		}
		if reserved && !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%q: the error %q does not say that the name is reserved", name, err)
		}
	}
}
