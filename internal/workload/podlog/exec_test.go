package podlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

// The answers of the commands of a pod.
var answers = `
- command: [rabbitmqctl, await_startup, ...]
  stdout: |
    started
- command: [cat, "*"]
  stdout: "0123456789"
  stderr: "warning\n"
  exitCode: 3
- command: [big]
  stdout: "` + bigOutput + `"
`

var bigOutput = strings.Repeat("x", 100_000)

// result is the output of a command as text: stdout, stderr, error and exit code.
func (s *site) result(stream func(context.Context, remotecommand.StreamOptions) error, tty bool) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), controltest.Patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	o := remotecommand.StreamOptions{Stdin: strings.NewReader("input"), Stdout: &stdout, Tty: tty}
	if !tty {
		o.Stderr = &stderr
	}
	err := stream(ctx, o)
	code := exec.CodeExitError{}
	if errors.As(err, &code) {
		return fmt.Sprintf("%s|%s|%d", &stdout, &stderr, code.Code)
	}
	return fmt.Sprintf("%s|%s|%v", &stdout, &stderr, err)
}

// executors returns a client of each protocol.
func (s *site) executors(at *url.URL) map[string]remotecommand.Executor {
	s.Helper()
	spdy, err := remotecommand.NewSPDYExecutor(s.config, "POST", at)
	if err != nil {
		s.Fatal(err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(s.config, "GET", at.String())
	if err != nil {
		s.Fatal(err)
	}
	return map[string]remotecommand.Executor{"SPDY": spdy, "WebSocket": socket}
}

// path returns the URL of an exec or attach.
func (s *site) path(pod, subresource string, o runtime.Object) *url.URL {
	return s.client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).
		SubResource(subresource).VersionedParams(o, scheme.ParameterCodec).URL()
}

// TestExec runs commands by SPDY and by WebSocket: answers, exit codes, a terminal, unknown commands, a long output.
func TestExec(t *testing.T) {
	s := start(t)
	s.create("web", running, "bowsprit.dev/simulate-exec", answers)
	for _, test := range []struct {
		command []string
		tty     bool
		want    string
	}{
		{[]string{"rabbitmqctl", "await_startup"}, false, "started\n||<nil>"},
		{[]string{"rabbitmqctl", "await_startup", "--timeout", "5"}, false, "started\n||<nil>"},
		{[]string{"cat", "/etc/passwd"}, false, "0123456789|warning\n|3"},
		{[]string{"cat", "/etc/passwd"}, true, "0123456789warning\n||3"},
		{[]string{"cat"}, false, "|cat: not found among the simulated commands of the pod (annotation " +
			"bowsprit.dev/simulate-exec)\n|127"},
		{[]string{"big"}, false, bigOutput + "||<nil>"},
	} {
		at := s.path("web", "exec", &corev1.PodExecOptions{
			Command: test.command, Stdin: true, Stdout: true, Stderr: !test.tty, TTY: test.tty,
		})
		for name, e := range s.executors(at) {
			if got := s.result(e.StreamWithContext, test.tty); got != test.want {
				t.Errorf("%s %q: %.200q, want %.200q", name, test.command, got, test.want)
			}
		}
	}
}

// TestExecRefused checks the errors of commands in containers without answers, with malformed ones, and of containers
// that do not run.
func TestExecRefused(t *testing.T) {
	s := start(t)
	s.create("none", running)
	s.create("bad", running, "simulate-exec.bowsprit.dev/main", "- local: {}\n")
	s.create("waits", waitsBecause("ErrImagePull"), "bowsprit.dev/simulate-pull-failure", "true",
		"bowsprit.dev/simulate-exec", answers)
	for pod, want := range map[string]string{
		"none": "node node-0 is simulated: it runs no containers. The annotation bowsprit.dev/simulate-exec of the pod " +
			"gives the answers of commands",
		"bad":   `annotation simulate-exec.bowsprit.dev/main of pod bad: `,
		"waits": `unable to upgrade connection: container not found ("main")`,
	} {
		at := s.path(pod, "exec", &corev1.PodExecOptions{Command: []string{"cat", "x"}, Stdout: true})
		for name, e := range s.executors(at) {
			err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
			if err == nil || name == "SPDY" && !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want %q", name, pod, err, want)
			}
		}
	}
}

// TestAttach attaches to a container: the client gets the lines that it writes from then on, until it ends.
func TestAttach(t *testing.T) {
	s := start(t)
	s.create("web", running, "bowsprit.dev/simulate-logs", "before\n+1h after\n+2h last\n",
		"bowsprit.dev/simulate-run-time", "3h")
	at := s.path("web", "attach", &corev1.PodAttachOptions{Stdout: true, Stderr: true})
	for name, e := range s.executors(at) {
		if name == "WebSocket" {
			continue // TestExec has it; the container runs once
		}
		r, w := io.Pipe()
		ended := make(chan error, 1) // the one result
		go func() {
			err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: w, Stderr: io.Discard})
			w.CloseWithError(io.EOF)
			ended <- err
		}()
		stop := controltest.Advancing(s.clock, 10*time.Minute)
		got, err := io.ReadAll(r)
		stop()
		if err != nil || !strings.HasSuffix(string(got), "last\n") || strings.Contains(string(got), "before") {
			t.Errorf("%q, %v", got, err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestExecOldSocket runs a command as clients with version 4 of the WebSocket protocol do.
func TestExecOldSocket(t *testing.T) {
	s := start(t)
	s.create("web", running, "bowsprit.dev/simulate-exec", answers)
	at := s.path("web", "exec", &corev1.PodExecOptions{Command: []string{"cat", "x"}, Stdout: true, Stderr: true})
	at.Scheme = "wss"
	config, err := rest.TLSConfigFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = nil
	dialer := websocket.Dialer{TLSClientConfig: config, Subprotocols: []string{"v4.channel.k8s.io"}}
	conn, response, err := dialer.DialContext(t.Context(), at.String(), nil)
	if err != nil {
		t.Fatalf("%v: %+v", err, response)
	}
	defer conn.Close()
	got := map[byte]string{}
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			break
		}
		got[data[0]] += string(data[1:])
	}
	if got[1] != "0123456789" || got[2] != "warning\n" || !strings.Contains(got[3], `"reason":"ExitCode","message":"3"`) {
		t.Errorf("%q", got)
	}
}
