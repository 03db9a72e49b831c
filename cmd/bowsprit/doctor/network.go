package doctor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

const (
	patience = 5 * time.Second
	// skew is how far clocks may be apart before tokens and certificates are taken for too early or too late.
	skew = 5 * time.Second
)

// unreadable is the advice about a kubeconfig of the data directory that cannot be used.
const unreadable = "run this command as the server's user; if the content is damaged, move the file away: the next start " +
	"makes it again"

// server checks the health and the clock of the server in the data directory's kubeconfig.
func (e *examination) server(ctx context.Context) {
	file := filepath.Join(e.dir, "kubeconfig")
	if e.dir == "" || !exists(file) {
		e.add("server", OK, "", "no server has run here yet")
		return
	}
	config, err := connect.FromFile(file)
	if err != nil {
		e.add("server", Problem, unreadable, "%v", err)
		return
	}
	config.Timeout = patience
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		e.add("server", Problem, unreadable, "%s: %v", file, err)
		return
	}
	host := strings.TrimSuffix(config.Host, "/")
	answer, body, err := get(ctx, client, host+"/readyz?verbose")
	if err != nil {
		e.add("server", Warning, `start it with "bowsprit serve", or see its log for why it stopped`, "%s does not answer: %v", config.Host,
			connect.Reason(err))
		return
	}
	e.client, e.host = client, host
	e.clock(answer)
	var failing []string
	for line := range strings.Lines(body) {
		if check, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			failing = append(failing, check)
		}
	}
	if answer.StatusCode != http.StatusOK {
		e.add("server", Problem, "see its log; docs/operations.md describes each check",
			"%s is not ready: %s", config.Host, strings.Join(failing, "; "))
		return
	}
	e.add("server", OK, "", "%s is ready", config.Host)
}

// clock compares the clock of a server, which may be on another machine, with that here.
func (e *examination) clock(answer *http.Response) {
	there, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return
	}
	if apart := time.Since(there).Abs(); apart > skew {
		e.add("clock", Warning, "synchronize both machines with a time server", "it differs from the server's by %s",
			apart.Round(time.Second))
		return
	}
	e.add("clock", OK, "", "as the server's")
}

// get requests a page.
func get(ctx context.Context, client *http.Client, url string) (*http.Response, string, error) {
	return do(ctx, client, http.MethodGet, url, http.NoBody)
}

func do(ctx context.Context, client *http.Client, method, url string, in io.Reader) (*http.Response, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return nil, "", err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer, string(body), err
}

// port sees whether the server could listen, if it does not run.
func (e *examination) port() {
	address := net.JoinHostPort(e.Settings.BindAddress, strconv.Itoa(e.Settings.SecurePort))
	if e.client != nil || e.Settings.SecurePort == 0 {
		return
	}
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, os.ErrPermission):
		e.add("port", Problem, "use a port above 1023, or give the server CAP_NET_BIND_SERVICE", "%v", err)
	case err != nil:
		e.add("port", Problem, "stop its process, or choose another with --secure-port (0 picks a free one)", "%v", err)
	default:
		l.Close()
		e.add("port", OK, "", "%s is free", address)
	}
}
