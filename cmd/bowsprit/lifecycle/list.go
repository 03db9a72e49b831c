package lifecycle

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// Row is an instance in the list for programs.
type Row struct {
	Name   string `json:"name"`
	Status string `json:"status"` // Ready, Starting or Stopped
	URL    string `json:"url,omitempty"`
	// Data is the data directory, or "memory".
	Data    string    `json:"data"`
	Context string    `json:"context,omitempty"` // in Kubeconfig
	Flags   []string  `json:"flags,omitempty"`
	Log     string    `json:"log,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Unit    string    `json:"unit,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Kubeconfig is the file of kubectl that has the context.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// The states of an instance.
const (
	ready    = "Ready"
	starting = "Starting" // or hanging
	stopped  = "Stopped"
)

// ListCommand returns "bowsprit list".
func ListCommand() *cobra.Command {
	var form output.Form
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List this user's named servers",
		Long: `List the servers that "bowsprit up" has started, and the server of "bowsprit serve" if it has data: their states, URLs,
contexts and data.`,
		Example: `  bowsprit list
  bowsprit list -o json`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, failure := rows(cmd.Context())
			if err := printRows(cmd.OutOrStdout(), rows, form); err != nil {
				return err
			}
			return failure
		},
	}
	form.Bind(cmd.Flags())
	return cmd
}

// rows returns the instances by name, and an error about the unreadable ones.
func rows(ctx context.Context) ([]Row, error) {
	all, failure := instance.List()
	rows := make([]Row, len(all), len(all)+1)
	var states sync.WaitGroup
	served := instance.DefaultDataDir()
	for n, i := range all {
		if i.DataDir == served {
			served = ""
		}
		states.Go(func() { rows[n] = rowOf(ctx, i) })
	}
	states.Wait()
	if served != "" && connect.Exists(filepath.Join(served, "kubeconfig")) {
		row := Row{Name: instance.Default + " (serve)", Status: stopped, Data: served}
		if connect.Answers(served) {
			row.Status = ready
			if config, err := connect.FromFile(filepath.Join(served, "kubeconfig")); err == nil {
				row.URL = connect.URL(config)
			}
		}
		rows = append(rows, row)
	}
	return rows, failure
}

func rowOf(ctx context.Context, i *instance.Instance) Row {
	row := Row{
		Name: i.Name, Status: stopped, Data: i.DataDir, Context: i.Context(), Kubeconfig: i.Kubeconfig, Flags: i.Flags,
		Log: i.Log(), Unit: i.Unit, Created: i.Created,
	}
	if i.Ephemeral {
		row.Data = "memory"
	}
	if i.Kubeconfig == "" {
		row.Context = ""
	}
	if i.Locked() {
		row.URL, row.PID, row.Status = url(i), i.PID(), starting
		if isReady(ctx, i) {
			row.Status = ready
		}
	}
	return row
}

func printRows(out io.Writer, rows []Row, form output.Form) error {
	if rows == nil {
		rows = []Row{} // a list in JSON
	}
	return form.Print(out, rows, func(out io.Writer) error { return table(out, rows) })
}

func table(out io.Writer, rows []Row) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "There is no instance: \"bowsprit up\" starts one.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATUS\tURL\tCONTEXT\tAGE\tDATA")
	for _, r := range rows {
		age := ""
		if !r.Created.IsZero() {
			age = duration.HumanDuration(time.Since(r.Created))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Status, r.URL, r.Context, age, r.Data)
	}
	return w.Flush()
}
