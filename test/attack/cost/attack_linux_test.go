package cost

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// full is the size of a hostile body, in bytes: a little less than the server reads.
	full = 2_900_000
	// deadline is the timeout that each request sets.
	deadline = 10 * time.Second
	// grace is added to the deadline for the way of an answer on a busy machine.
	grace = 2 * time.Second
	// quiet is the time after the end of a client within which the server's CPU use has to end.
	quiet = 2 * time.Second
	// settling bounds the time after a response until a controller has evaluated the object.
	settling = 30 * time.Second
)

// attack is one request that is meant to cost the server more than its client.
type attack struct {
	family, name      string
	method, path      string
	contentType, body string
	// effect is set if the server's work begins after its response: a controller evaluates the object.
	effect *effect
}

// effect is the sign that a controller has evaluated an object.
type effect struct {
	watch string // the path and query of a collection
	text  string // in an event of the watch
}

// outcome is the cost of an attack.
type outcome struct {
	attack
	code     int           // 0 without an answer
	took     time.Duration // until the answer, or until the client gave up
	peak     int64         // added to the resident memory, in bytes
	busy     float64       // processors in use, two seconds after the client has left
	exceeded []string      // the bounds that it has missed
}

// bound returns the memory that an attack may add at most.
func (a *attack) bound() int64 { return 8*int64(len(a.body)) + 64<<20 }

// user sends requests with a token.
type user struct {
	*http.Client
	host string
}

func as(t *testing.T, server *process, token string) user {
	t.Helper()
	config := server.config
	if token != "" {
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = token
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return user{client, config.Host}
}

// send returns the status of the response, or 0 without one, and the beginning of its body.
func (u user) send(ctx context.Context, a attack) (code int, begin string) {
	path := a.path
	if !strings.Contains(path, "timeout=") {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "timeout=" + deadline.String()
	}
	r, err := http.NewRequestWithContext(ctx, a.method, u.host+path, strings.NewReader(a.body))
	if err != nil {
		return 0, err.Error()
	}
	if a.contentType != "" {
		r.Header.Set("Content-Type", a.contentType)
	}
	answer, err := u.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, string(text)
}

// sees waits for an effect. It reports whether there is one in time.
func (u user) sees(t *testing.T, e effect) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settling)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.host+e.watch+"&watch=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := u.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	events := bufio.NewScanner(answer.Body)
	for events.Scan() {
		if strings.Contains(events.Text(), e.text) {
			return true
		}
	}
	return false
}

// try sends an attack and measures it. Memory is counted from the server's size before.
func (p *process) try(t *testing.T, u user, a attack) outcome {
	t.Helper()
	o := outcome{attack: a}
	before := p.memory(t, "VmRSS")
	p.resetPeak(t)
	ctx, cancel := context.WithTimeout(t.Context(), deadline+grace)
	defer cancel()
	began := time.Now()
	var begin string
	o.code, begin = u.send(ctx, a)
	o.took = time.Since(began)
	if a.effect != nil && !u.sees(t, *a.effect) {
		o.exceeded = append(o.exceeded, "effect")
	}
	o.peak = p.memory(t, "VmHWM") - before
	if testing.Verbose() && os.Getenv("ATTACK_ANSWERS") != "" {
		t.Logf("%s %s: %d, %.2fs, %d MB from %d MB: %s", a.family, a.name, o.code, o.took.Seconds(), o.peak>>20, before>>20,
			begin)
	}
	if o.peak > a.bound() {
		o.exceeded = append(o.exceeded, "memory")
	}
	if o.code == 0 {
		o.exceeded = append(o.exceeded, "answer")
	}
	return o
}

// leave sends an attack again, ends its client after a second, and measures the processors in use two seconds later. It
// measures the work of controllers without another request.
func (p *process) leave(t *testing.T, u user, o *outcome) {
	t.Helper()
	switch {
	case o.effect != nil:
	case o.took < time.Second:
		return
	default:
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		u.send(ctx, o.attack)
		cancel()
		time.Sleep(quiet)
	}
	began, used := time.Now(), p.cpu(t)
	time.Sleep(time.Second)
	if o.busy = float64(p.cpu(t)-used) / float64(time.Since(began)); o.busy > 0.5 {
		o.exceeded = append(o.exceeded, "CPU")
	}
}

// report prints a table of the outcomes, the largest memory first, and returns the missed bounds.
func report(outcomes []outcome) (table string, missed []string) {
	slices.SortStableFunc(outcomes, func(a, b outcome) int { return int((b.peak - a.peak) >> 10) })
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "family\tattack\tbody kB\tpeak MB\tbound MB\tstatus\ttook s\tCPU after\tmissed")
	for _, o := range outcomes {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%s\n", o.family, o.name, len(o.body)/1000, o.peak>>20,
			o.bound()>>20, o.code, o.took.Seconds(), o.busy, strings.Join(o.exceeded, ","))
		if len(o.exceeded) > 0 {
			missed = append(missed, fmt.Sprintf("%s: %s: %s", o.family, o.name, strings.Join(o.exceeded, ", ")))
		}
	}
	w.Flush()
	return out.String(), missed
}
