package zktest

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Mode returns the mode that the server reports: standalone, leader, follower or read-only. It
// returns an error if the server does not serve.
func (s *Server) Mode() (string, error) {
	text, err := s.Ask("srvr")
	if err != nil {
		return "", err
	}
	_, after, ok := strings.Cut(text, "\nMode: ")
	if !ok {
		return "", errors.New("the server does not serve: " + text)
	}
	mode, _, _ := strings.Cut(after, "\n")
	return mode, nil
}

// Ask sends one of ZooKeeper's four-letter words and returns the answer.
func (s *Server) Ask(word string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// Type gives commands to ZooKeeper's own client, one on each line, and returns its output.
func (s *Server) Type(commands string) (string, error) {
	java := slices.Clone(s.java)
	main := slices.Index(java, Main)
	cmd := exec.Command(java[0], append(java[1:main], "org.apache.zookeeper.ZooKeeperMain", "-server", s.Addr)...)
	cmd.Stdin = strings.NewReader(commands + "\nquit\n")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
