// Package doctor has what "bowsprit doctor" looks at: whether a server with certain settings could start and go on
// here, and whether the one that runs is well. Each check says what is so and, if that is not right, what to do.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	// Text is what is so, Do what to do about it.
	Text string `json:"text"`
	Do   string `json:"do,omitempty"`
}

// State is how bad a finding is.
type State string

const (
	// OK is as it should be.
	OK State = "ok"
	// Warning works, but not well, or not for long.
	Warning State = "warning"
	// Problem keeps a server from starting or working.
	Problem State = "problem"
)

// Settings are those of a server that something here can contradict.
type Settings struct {
	// DataDir is empty if the server is ephemeral.
	DataDir     string
	BindAddress string
	// SecurePort is 0 if any will do.
	SecurePort int
	// TLSCert and what begins with Etcd are files and URLs as in the flags, empty if not set; QuotaBackendBytes is 0
	// then.
	TLSCert                   string
	EtcdServers               []string
	EtcdPrefix                string
	EtcdCA, EtcdCert, EtcdKey string
	QuotaBackendBytes         int64
}

// Patient is what is looked at.
type Patient struct {
	// Settings are those that the server would have, or has.
	Settings Settings
	// Invalid is what is wrong with the settings, nil if nothing is.
	Invalid error
	// Now is the clock of this machine.
	Now time.Time
}

// Examine does all checks, in the order in which a start needs what they look at.
func Examine(ctx context.Context, p Patient) []Finding {
	e := &examination{Patient: p, dir: p.Settings.DataDir}
	e.settings()
	e.dataDir()
	e.certificates()
	e.server(ctx)
	e.port()
	e.etcd(ctx)
	e.limits()
	return e.findings
}

// examination gathers findings.
type examination struct {
	Patient
	dir      string
	running  bool // a server with this data directory answers
	findings []Finding
}

func (e *examination) add(check string, state State, do, format string, args ...any) {
	e.findings = append(e.findings, Finding{Check: check, State: state, Text: fmt.Sprintf(format, args...), Do: do})
}

func (e *examination) settings() {
	if e.Invalid != nil {
		e.add("settings", Problem, `correct them; "bowsprit config print" shows where each comes from`, "%v", e.Invalid)
		return
	}
	e.add("settings", OK, "", "no contradictions")
}

// errSick ends the command with the exit code of a failure.
var errSick = errors.New("there are problems")

// Show writes the findings as text or JSON. Problems are an error.
func Show(out io.Writer, form string, findings []Finding) error {
	if form == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(findings); err != nil {
			return err
		}
	} else if err := table(out, findings); err != nil {
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
