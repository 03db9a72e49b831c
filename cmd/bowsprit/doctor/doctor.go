// Package doctor implements the checks of "bowsprit doctor": whether a server with the given settings could start and
// keep working on this machine, and whether the running server is healthy. Each check reports a state and, if it is
// bad, a remedy.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	// Text is the observation, Do the remedy.
	Text string `json:"text"`
	Do   string `json:"do,omitempty"`
}

// State is how bad a finding is.
type State string

const (
	// OK means that the checked part is in order.
	OK State = "ok"
	// Warning means that it works, but not well, or not for long.
	Warning State = "warning"
	// Problem keeps a server from starting or working.
	Problem State = "problem"
)

// Settings holds the settings of a server that the machine can contradict.
type Settings struct {
	// DataDir is empty if the server is ephemeral.
	DataDir     string
	BindAddress string
	// SecurePort is 0 if any will do.
	SecurePort int
	// TLSCert and the fields that begin with Etcd are files and URLs as in the flags. They are empty if not set, and
	// QuotaBackendBytes is 0.
	TLSCert                   string
	EtcdServers               []string
	EtcdPrefix                string
	EtcdCA, EtcdCert, EtcdKey string
	QuotaBackendBytes         int64
}

// Patient is the subject of an examination.
type Patient struct {
	// Settings are the settings of the server, running or not.
	Settings Settings
	// Invalid is the error of validating the settings, or nil.
	Invalid error
	// Now is the clock of this machine.
	Now time.Time
	// Find returns the keys with matching values below some prefixes, in the directory of a stopped embedded etcd
	// (embedded.Find).
	Find func(dir string, below []string, matches func(value []byte) bool) ([]string, error)
}

// Examine runs all checks, in the order in which a start needs the checked parts.
func Examine(ctx context.Context, p Patient) []Finding {
	e := &examination{Patient: p, dir: p.Settings.DataDir}
	e.settings()
	e.dataDir()
	e.certificates()
	e.server(ctx)
	e.port()
	e.etcd(ctx)
	e.removedVersions(ctx)
	e.limits()
	return e.findings
}

// examination gathers findings.
type examination struct {
	Patient
	dir      string
	client   *http.Client // of a server with this data directory that answers at host; nil if none does
	host     string
	gateway  *gateway // of an external etcd; nil without one
	findings []Finding
}

func (e *examination) add(check string, state State, do, format string, args ...any) {
	e.findings = append(e.findings, Finding{Check: check, State: state, Text: fmt.Sprintf(format, args...), Do: do})
}

func (e *examination) settings() {
	if e.Invalid != nil {
		e.add("settings", Problem, `correct them; "bowsprit config print" shows the source of each`, "%v", e.Invalid)
		return
	}
	e.add("settings", OK, "", "no contradictions")
}

// errSick ends the command with the exit code of a failure.
var errSick = errors.New("problems found")

// Show prints the findings. Problems are an error.
func Show(out io.Writer, form output.Form, findings []Finding) error {
	if err := form.Print(out, findings, func(out io.Writer) error { return table(out, findings) }); err != nil {
		return err
	}
	for _, f := range findings {
		if f.State == Problem {
			return errSick
		}
	}
	return nil
}

func table(out io.Writer, findings []Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.State, f.Check, f.Text)
		if f.Do != "" {
			fmt.Fprintf(w, "\t\tto do: %s\n", f.Do)
		}
	}
	return w.Flush()
}
