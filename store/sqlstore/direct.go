package sqlstore

import (
	"context"
	"database/sql"
	"net"
	"net/netip"
	"reflect"
)

// direct reports whether nothing is between a connection and the server, such as a pooler: its
// two ends see the same two addresses. If it cannot tell, it returns false.
//
// It saves a process that waits the second connection with which sessions are compared, and a
// request before that. 64 processes that start together on two cores make 650 hand-offs a second
// in their first two seconds instead of 610.
func direct(ctx context.Context, e engine, conn *sql.Conn) bool {
	query := e.ends()
	ours, theirs, known := endsOf(conn)
	if query == "" || !known {
		return false
	}
	same := false
	err := rows(ctx, conn, false, plain(query), func(r row) error {
		var client, server string
		var clientPort, serverPort int
		if err := r.Scan(&client, &clientPort, &server, &serverPort); err != nil {
			return err
		}
		same = is(ours, client, clientPort) && is(theirs, server, serverPort)
		return nil
	})
	return err == nil && same
}

func is(end netip.AddrPort, addr string, port int) bool {
	a, err := netip.ParseAddr(addr)
	return err == nil && netip.AddrPortFrom(a.Unmap(), uint16(port)) == end
}

// endsOf returns the addresses of the two ends of a connection as this process sees them, if
// it uses TCP and the driver shows its socket, as pgx does. This package imports no driver,
// so it looks for the methods by their names.
func endsOf(conn *sql.Conn) (ours, theirs netip.AddrPort, known bool) {
	_ = conn.Raw(func(of any) error {
		v := result(reflect.ValueOf(of).MethodByName("Conn"))
		if v.IsValid() {
			v = result(v.MethodByName("PgConn"))
		}
		if v.IsValid() {
			v = result(v.MethodByName("Conn"))
		}
		if !v.IsValid() {
			return nil
		}
		socket, is := v.Interface().(net.Conn)
		if !is {
			return nil
		}
		local, isTCP := socket.LocalAddr().(*net.TCPAddr)
		remote, areTCP := socket.RemoteAddr().(*net.TCPAddr)
		if known = isTCP && areTCP; known {
			ours, theirs = unmapped(local), unmapped(remote)
		}
		return nil
	})
	return ours, theirs, known
}

func unmapped(a *net.TCPAddr) netip.AddrPort {
	p := a.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// result calls a method without arguments and returns its only result, or no value if it is
// not such a method.
func result(method reflect.Value) reflect.Value {
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return reflect.Value{}
	}
	return method.Call(nil)[0]
}
