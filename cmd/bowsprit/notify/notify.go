// Package notify reports the state of the server to a service manager, in the protocol of sd_notify(3): a datagram of
// lines NAME=VALUE to the socket that NOTIFY_SOCKET names. Without the variable it sends nothing. One goroutine may use
// a Manager; a second one may run Watch.
package notify

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Manager is the service manager that started the process. The zero value receives nothing.
type Manager struct {
	socket   string
	watchdog time.Duration // after which silence is taken for a hang; 0: never
}

// New reads the environment that the manager has given to the process pid.
func New(getenv func(string) string, pid int) *Manager {
	m := &Manager{socket: getenv("NOTIFY_SOCKET")}
	if owner := getenv("WATCHDOG_PID"); owner != "" && owner != strconv.Itoa(pid) {
		return m // meant for another process, which has started this one
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		m.watchdog = time.Duration(usec) * time.Microsecond
	}
	return m
}

// OfProcess returns the manager of this process.
func OfProcess() *Manager { return New(os.Getenv, os.Getpid()) }

// Ready reports that the server serves at the URL.
func (m *Manager) Ready(url string) error { return m.send("READY=1", "STATUS=Serving "+url) }

// Stopping reports that the server has begun to stop.
func (m *Manager) Stopping() error { return m.send("STOPPING=1", "STATUS=Stopping") }

func (m *Manager) send(lines ...string) error {
	if m.socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", m.socket) // a name that begins with @ is in Linux' abstract namespace
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	defer conn.Close()
	if _, err = conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return nil
}

// Watch feeds the manager's watchdog until ctx ends, as long as alive returns nil. If the watchdog gets no message in
// time, the manager kills the server and starts it again.
func (m *Manager) Watch(ctx context.Context, log *slog.Logger, alive func(context.Context) error) {
	if m.watchdog == 0 || m.socket == "" {
		return
	}
	every := time.NewTicker(m.watchdog / 3)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		bounded, cancel := context.WithTimeout(ctx, m.watchdog/2)
		err := alive(bounded)
		cancel()
		if err == nil {
			err = m.send("WATCHDOG=1")
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("the server does not respond to its own health check; the service manager restarts it if this continues",
				"error", err, "within", m.watchdog)
		}
	}
}

// Live returns a function that requests /livez from a server.
func Live(config *rest.Config) func(context.Context) error { return Probe(config, "/livez") }

// Probe returns a function that requests a path with a health check from a server.
func Probe(config *rest.Config, path string) func(context.Context) error {
	client, failed := rest.HTTPClientFor(config)
	return func(ctx context.Context) error {
		if failed != nil {
			return failed
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+path,
			http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s", path, answer.Status)
		}
		return nil
	}
}
