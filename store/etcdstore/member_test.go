package etcdstore

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// An endpoint at which nothing listens does not use up the time of a call, whether or not there is
// a user: the next one is asked at once.
func TestDeadEndpointTakesNoTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, user := range []string{"", "me"} {
		e := &member{endpoint: l.Addr().String()}
		var unconnected *unconnectedError
		err = e.try(t.Context(), Options{Timeout: time.Hour, Username: user, Password: user}, time.Hour, func(ctx context.Context, c *client) error {
			t.Errorf("user %q: a request is sent without a connection", user)
			return nil
		})
		if !errors.As(err, &unconnected) || !faultOf(err).certain || !faultOf(err).again {
			t.Errorf("user %q: %v, want that it cannot connect, and another try", user, err)
		}
		e.close()
	}
}
