package kubelet

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/net/egress"
)

func TestContainer(t *testing.T) {
	pod := func(names ...string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Name = "web"
		for _, name := range names {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		}
		return p
	}
	several := pod("a", "b")
	several.Spec.InitContainers = []corev1.Container{{Name: "first"}}
	several.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger"}},
	}
	for _, c := range []struct {
		pod                   *corev1.Pod
		requested, want, fail string
	}{
		{pod("a"), "", "a", ""},
		{pod("a"), "a", "a", ""},
		{pod("a"), "b", "", "container b is not valid for pod web"},
		{pod(), "", "", "a container name must be specified for pod web"},
		{several, "", "", "a container name must be specified for pod web, choose one of: [first a b debugger]"},
		{several, "first", "first", ""},
		{several, "debugger", "debugger", ""},
	} {
		got, err := container(c.requested, c.pod)
		if got != c.want || (err == nil) != (c.fail == "") || err != nil && err.Error() != c.fail {
			t.Errorf("%q of %d containers: %q, %v; want %q, %q", c.requested, len(c.pod.Spec.Containers), got, err, c.want,
				c.fail)
		}
	}
}

func TestLogOptions(t *testing.T) {
	for _, c := range []struct {
		query string
		split bool
		sent  string // the path requested from the kubelet
		fail  string
	}{
		{query: "", sent: ""},
		{query: "follow=true&previous=1&timestamps&container=x", sent: "follow=true&previous=true&timestamps=true"},
		{query: "follow=false&tailLines=0&limitBytes=1&sinceSeconds=1", sent: "limitBytes=1&sinceSeconds=1&tailLines=0"},
		{query: "sinceTime=2020-01-01T01:00:00%2B01:00", sent: "sinceTime=2020-01-01T00%3A00%3A00Z"},
		{query: "stream=Stdout", split: true, sent: "stream=Stdout"},
		{query: "stream=Stdout&tailLines=1", split: true, fail: "`tailLines` and specific `stream` are mutually exclusive"},
		{query: "stream=All&tailLines=1", split: true, sent: "stream=All&tailLines=1"},
		{query: "stream=Other", split: true, fail: `Unsupported value: "Other": supported values: "All", "Stderr", "Stdout"`},
		{query: "stream=All", fail: "stream: Forbidden: may not be specified"},
		{query: "tailLines=-1", fail: "tailLines: Invalid value: -1: must be greater than or equal to 0"},
		{query: "limitBytes=0", fail: "limitBytes: Invalid value: 0: must be greater than 0"},
		{query: "sinceSeconds=0", fail: "sinceSeconds: Invalid value: 0: must be greater than 0"},
		{query: "sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", fail: "at most one of `sinceTime` or `sinceSeconds`"},
		{query: "tailLines=many", fail: `parsing "many": invalid syntax`},
		{query: "sinceTime=yesterday", fail: `parsing time "yesterday"`},
	} {
		t.Run(c.query, func(t *testing.T) {
			query, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			o, err := logOptions(query)
			if err == nil {
				err = (&connector{settings: Settings{Gates: Gates{SplitLogs: c.split}}}).check(o).ToAggregate()
			}
			switch {
			case c.fail == "" && err != nil, c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
				t.Errorf("%v; want %q", err, c.fail)
			case c.fail == "" && logQuery(o).Encode() != c.sent:
				t.Errorf("the kubelet is asked for %q, not %q", logQuery(o).Encode(), c.sent)
			}
		})
	}
}

// TestHandshakeTimeout checks that a kubelet must begin the TLS handshake of a connection to be hijacked within the
// connect timeout, and may be silent later.
func TestHandshakeTimeout(t *testing.T) {
	dialed := func(t *testing.T) (conn, kubelet net.Conn) {
		here, there := net.Pipe()
		t.Cleanup(func() { there.Close() })
		y := &connector{settings: Settings{Timeout: time.Second}}
		dial := y.answered(func(context.Context, string, string) (net.Conn, error) { return here, nil })
		conn, err := dial(context.WithValue(t.Context(), boundKey{}, true), "tcp", "kubelet:10250")
		if err != nil {
			t.Fatal(err)
		}
		return conn, there
	}
	synctest.Test(t, func(t *testing.T) {
		conn, _ := dialed(t)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, errHandshake) {
			t.Errorf("a read of a kubelet that says nothing: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		conn, kubelet := dialed(t)
		go func() {
			kubelet.Write([]byte("a"))
			time.Sleep(time.Hour) // in the bubble: long after the limit
			kubelet.Write([]byte("b"))
		}()
		for range 2 {
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Errorf("a read of a kubelet that has answered: %v", err)
			}
		}
	})
}

// TestConnectionEndsWithRequest checks that a connection for a single request ends with it, and that others outlive it.
func TestConnectionEndsWithRequest(t *testing.T) {
	for _, alone := range []bool{true, false} {
		here, there := net.Pipe()
		defer there.Close()
		y := &connector{settings: Settings{Timeout: time.Hour}}
		dial := y.bounded(egress.Dial(func(context.Context, string, string) (net.Conn, error) { return here, nil }))
		ctx, leave := context.WithCancel(t.Context())
		requestCtx := ctx
		if alone {
			requestCtx = context.WithValue(ctx, boundKey{}, true)
		}
		conn, err := dial(requestCtx, "tcp", "kubelet:10250")
		if err != nil {
			t.Fatal(err)
		}
		leave()
		if alone {
			if _, err := there.Read(make([]byte, 1)); err == nil {
				t.Error("the connection is still there")
			}
			continue
		}
		go conn.Write([]byte("x"))
		if _, err := there.Read(make([]byte, 1)); err != nil {
			t.Errorf("a connection that others may use ended with the request: %v", err)
		}
		conn.Close()
	}
}

// TestTimeout checks that an unreachable kubelet is given up after the timeout.
func TestTimeout(t *testing.T) {
	y := &connector{settings: Settings{Timeout: time.Nanosecond}}
	dial := y.bounded(func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if _, err := dial(t.Context(), "tcp", "kubelet:10250"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestProxyable(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": false, "169.254.169.254": false, "::1": false, "10.0.0.7": true,
	} {
		if err := proxyable(t.Context(), host); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestAddresses checks that a server that listens for remote clients connects to no kubelet at an address of its own
// machine or link, whether the node has the address or a name for it. A server that listens only locally may use
// loopback addresses.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]struct{ remote, local bool }{
		"10.0.0.7": {true, true}, "192.0.2.1": {true, true}, "2001:db8::1": {true, true}, "fd00::1": {true, true},
		"::ffff:10.0.0.7": {true, true}, "127.0.0.1": {false, true}, "127.0.1.1": {false, true}, "::1": {false, true},
		"::ffff:127.0.0.1": {false, true}, "169.254.169.254": {}, "fe80::1": {}, "fe80::1%eth0": {}, "0.0.0.0": {},
		"::": {}, "224.0.0.1": {}, "ff02::1": {}, "::ffff:169.254.169.254": {}, "255.255.255.255": {},
		"::ffff:0.0.0.0": {},
	} {
		for _, local := range []bool{false, true} {
			y := &connector{}
			dialed := false
			dial := y.checked(func(context.Context, string, string) (net.Conn, error) {
				dialed = true
				return nil, errors.New("unreachable")
			}, local)
			_, err := dial(t.Context(), "tcp", net.JoinHostPort(text, "10250"))
			ok := want.remote || local && want.local
			if dialed != ok || errors.Is(err, errAddress) == ok {
				t.Errorf("%s, local %v: dialed %v, %v", text, local, dialed, err)
			}
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	direct := func(ctx context.Context, network, _ string) (net.Conn, error) { // every name is this machine's
		return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
	}
	for _, local := range []bool{false, true} {
		conn, err := new(connector).checked(direct, local)(t.Context(), "tcp", net.JoinHostPort("node.example", port))
		if (err == nil) != local || !local && !errors.Is(err, errAddress) {
			t.Errorf("a name with a loopback address, local %v: %v", local, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
	// As if by a proxy of this machine.
	conn, err := new(connector).checked(direct, false)(t.Context(), "tcp", "node.example:1")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
