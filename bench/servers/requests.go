package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Requests returns how many messages clients have sent to the server since it started,
// including keep-alives. It corresponds to the commands of Redis. It is always zero for a
// server that does not count them.
func (s *Server) Requests(ctx context.Context) (uint64, error) {
	if s.requests == nil {
		return 0, nil
	}
	return s.requests(ctx)
}

// etcdRequests counts the messages of all streams; a call has one or more.
func etcdRequests(ctx context.Context, url string) (uint64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var sum float64
	found := false
	for lines := bufio.NewScanner(answer.Body); ; {
		if !lines.Scan() {
			err = lines.Err()
			break
		}
		line := lines.Text()
		if !strings.HasPrefix(line, "grpc_server_msg_received_total{") {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+n, true
	}
	if err == nil && !found {
		err = errors.New("etcd does not report how many messages it received")
	}
	return uint64(sum), err
}

// zookeeperRequests returns the number that its statistics call received.
func zookeeperRequests(addr string) (uint64, error) {
	text, err := zookeeperSays(addr)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "Received: "); ok {
			return strconv.ParseUint(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("ZooKeeper does not report how many messages it received: %s", text)
}

// zookeeperSays returns ZooKeeper's short description of itself.
func zookeeperSays(addr string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	return string(text), err
}
