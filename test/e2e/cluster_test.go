package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// cluster is an etcd cluster of processes.
type cluster struct {
	members []*member
}

// member is one process of a cluster. It can be killed and started again.
type member struct {
	name, dir, client, peer, initial string
	cmd                              *exec.Cmd
	stderr                           bytes.Buffer
}

// startCluster starts n members and waits until all of them serve. They are killed when t ends. If seed is not nil, it
// fills a member's data directory before its first start.
func startCluster(t *testing.T, n int, seed func(m *member)) *cluster {
	t.Helper()
	c := &cluster{}
	var initial []string
	for i := range n {
		m := &member{
			name: fmt.Sprintf("m%d", i), dir: filepath.Join(t.TempDir(), "etcd"), client: freeURL(t), peer: freeURL(t),
		}
		c.members = append(c.members, m)
		initial = append(initial, m.name+"="+m.peer)
	}
	for _, m := range c.members {
		m.initial = strings.Join(initial, ",")
		if seed != nil {
			seed(m)
		}
	}
	var starting sync.WaitGroup
	failed := make([]error, n)
	for i, m := range c.members {
		t.Cleanup(m.kill)
		starting.Go(func() { failed[i] = m.start() })
	}
	starting.Wait()
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// endpoints is the value of --etcd-servers.
func (c *cluster) endpoints() string {
	var urls []string
	for _, m := range c.members {
		urls = append(urls, m.client)
	}
	return strings.Join(urls, ",")
}

// start starts the process and waits until it serves, which needs a majority of the members.
func (m *member) start() error {
	m.cmd = exec.Command(filepath.Join(binaries, "etcd"), "--name="+m.name, "--data-dir="+m.dir, "--client-url="+
		m.client, "--peer-url="+m.peer, "--initial-cluster="+m.initial)
	m.stderr.Reset()
	m.cmd.Stderr = &m.stderr
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	hung := time.AfterFunc(startLimit, func() { m.cmd.Process.Kill() })
	defer hung.Stop()
	if lines := bufio.NewScanner(out); !lines.Scan() {
		return fmt.Errorf("etcd %s did not start: %w\n%s", m.name, m.cmd.Wait(), &m.stderr)
	}
	return nil
}

// kill ends the process as a power failure would.
func (m *member) kill() {
	if m.cmd == nil || m.cmd.ProcessState != nil {
		return
	}
	m.cmd.Process.Kill()
	m.cmd.Wait()
}

// freeURL returns a free address. Members must have each other's addresses before they start.
func freeURL(t *testing.T) string {
	t.Helper()
	return "http://" + freeport.Address(t)
}

// site is a server that can be started again at the same address.
type site struct {
	t      *testing.T // the member ends with it
	flags  []string
	server *process
}

func startSite(t *testing.T, flags ...string) *site {
	t.Helper()
	_, port, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, flags: append([]string{"--data-dir=" + t.TempDir(), "--secure-port=" + port}, flags...)}
	s.start()
	return s
}

func (s *site) start() {
	s.t.Helper()
	s.server = startServer(s.t, s.flags...)
}
