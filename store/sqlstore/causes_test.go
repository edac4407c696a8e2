package sqlstore

import "testing"

// The errors of drivers begin with the cause, and say nothing twice.
func TestCausesOfDrivers(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"failed to connect to `user=u database=d`: 10.0.0.1:5432 (h): failed SASL auth: FATAL: password authentication failed for user \"u\" (SQLSTATE 28P01)", "10.0.0.1:5432: password refused for user u"},
		{"failed to connect to `user=u database=d`:\n\t10.0.0.1:5432 (h): tls error: server refused TLS connection\n\t10.0.0.1:5432 (h): failed SASL auth: FATAL: password authentication failed for user \"u\" (SQLSTATE 28P01)", "10.0.0.1:5432: password refused for user u"},
		{"failed to connect to `user=u database=d`:\n\t10.0.0.1:1 (h): dial error: dial tcp 10.0.0.1:1: connect: connection refused\n\t10.0.0.1:1 (h): dial error: dial tcp 10.0.0.1:1: connect: connection refused\n\t[::1]:2 (h): tls error: server refused TLS connection", "10.0.0.1:1: connection refused; [::1]:2: server refused TLS connection"},
		{"failed to connect to `user=u database=d`:\n\thostname resolving error: lookup h.invalid on 10.0.0.53:53: no such host\n\tlookup h.invalid on 10.0.0.53:53: no such host", "h.invalid: no such host"},
		{"failed to connect to `user=u database=d`: 10.0.0.1:3306 (h): received unexpected message: %!w(<nil>)", "10.0.0.1:3306: received unexpected message"},
		{"ERROR: relation \"leasehold.records\" does not exist (SQLSTATE 42P01)", "relation \"leasehold.records\" does not exist"},
		{"dial tcp 10.0.0.1:3306: connect: connection refused", "10.0.0.1:3306: connection refused"},
		{"Error 1045 (28000): Access denied for user 'u'@'h' (using password: YES)", "Access denied for user 'u'@'h' (using password: YES) (error 1045)"},
		{"invalid connection", "invalid connection"},
	} {
		if got := causeOf(c.text); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.1:5432: password refused for user u":          "10.0.0.1:5432",
		"[::1]:5432: connection refused":                      "[::1]:5432",
		"10.0.0.1:1: connection refused; 10.0.0.2:1: refused": "",
		"the server there is not PostgreSQL: 10.0.0.1:1: x":   "",
	} {
		if got, _, _ := addressOf(text); got != want {
			t.Errorf("the address in %q is %q, want %q", text, got, want)
		}
	}
}
