package webhook

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// TestHostileAnswers has webhooks try to exhaust the server.
func TestHostileAnswers(t *testing.T) {
	for _, answer := range hostile.Servers(t) {
		t.Run(answer.Name, func(t *testing.T) {
			t.Parallel()
			h := newHook(t, answer.ServeHTTP, "127.0.0.1")
			c := New(Options{})
			defer c.Close()
			_, err := c.Call(t.Context(), Target{URL: h.URL, CABundle: h.ca}, []byte("{}"))
			if answer.Name == "one long string" || answer.Name == "early hints" || answer.Status != 200 ||
				answer.Name == "long headers" {
				answer.CheckText(t, text(err))
				return
			}
			answer.Check(t, err)
		})
	}
}

// TestMalformedAnswer has a server answer a line that is not HTTP and has no end.
func TestMalformedAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = conn.Write([]byte(strings.Repeat("\x1b[31mno HTTP ", 10_000) + "\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	c := New(Options{})
	defer c.Close()
	_, err = c.Call(t.Context(), Target{URL: "http://" + l.Addr().String()}, []byte("{}"))
	if err == nil || len(err.Error()) > hostile.MaxError || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%.300q", text(err))
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
