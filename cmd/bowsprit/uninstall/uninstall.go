// Package uninstall implements "bowsprit uninstall", which lists the files of Bowsprit on this machine and the commands
// that remove them.
package uninstall

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// piece is a part of Bowsprit or its installation on this machine.
type piece struct {
	Description string `json:"description"`
	Path        string `json:"path"`
	// Bytes is its size, or 0 if the size has no meaning.
	Bytes int64 `json:"bytes,omitempty"`
	// Remove is the command that removes it.
	Remove string `json:"remove"`
}

// machine is where pieces are looked for.
type machine struct {
	root, dataDir, program, kubeconfig, context string
}

// Command returns "bowsprit uninstall". context is the name of the context that "bowsprit kubeconfig --merge" writes.
func Command(context string) *cobra.Command {
	var dataDir string
	var form output.Form
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "List the Bowsprit files on this machine, and the commands to remove them",
		Long: `List the Bowsprit files on this machine: data, the program, its context in kubectl's file, the service, each with the
command to remove it. This command removes nothing itself, because removed data cannot be recovered.`,
		Example: `  bowsprit uninstall
  bowsprit uninstall --data-dir /srv/bowsprit -o json`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			m := machine{"/", dataDir, program, clientcmd.NewDefaultPathOptions().GetDefaultFilename(), context}
			pieces, err := m.look()
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), form, pieces)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", connect.DefaultDataDir(), "the server's data directory")
	form.Bind(cmd.Flags())
	return cmd
}

// look finds the pieces.
func (m machine) look() (pieces []piece, err error) {
	if connect.Exists(filepath.Join(m.root, "usr/lib/systemd/system/bowsprit.service")) {
		remove := "dpkg --purge bowsprit"
		if !connect.Exists(filepath.Join(m.root, "var/lib/dpkg/info/bowsprit.list")) {
			remove = "rpm --erase bowsprit"
		}
		pieces = append(pieces, piece{Description: "package, with its service", Path: m.program, Remove: remove})
	} else {
		size := int64(0)
		if info, err := os.Stat(m.program); err == nil {
			size = info.Size()
		}
		pieces = append(pieces, piece{"program", m.program, size, "rm " + connect.Quote(m.program)})
	}
	dirs := []string{m.dataDir, filepath.Join(m.root, "var/lib/bowsprit")}
	for _, dir := range slices.Compact(dirs) {
		remove := removal(dir)
		if remove == "" {
			continue
		}
		size, err := sizeOf(dir)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece{"data: objects, certificates, keys", dir, size, remove})
	}
	config, err := clientcmd.LoadFromFile(m.kubeconfig)
	if errors.Is(err, fs.ErrNotExist) {
		return pieces, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		if c := config.Contexts[name]; m.ours(name, config.Clusters[c.Cluster]) {
			pieces = append(pieces, piece{Description: "context " + name, Path: m.kubeconfig, Remove: fmt.Sprintf(
				"kubectl config delete-context %s; kubectl config delete-cluster %s; kubectl config delete-user %s",
				connect.Quote(name), connect.Quote(c.Cluster), connect.Quote(c.AuthInfo))})
		}
	}
	return pieces, nil
}

// ours reports whether a context is of the server with the data directory. Without a kubeconfig there, the name
// decides.
func (m machine) ours(name string, cluster *clientcmdapi.Cluster) bool {
	own := connect.LocalCluster(m.dataDir)
	if own == nil {
		return name == m.context
	}
	return connect.SameServer(own, cluster)
}

// made are the entries that a server makes in its data directory.
var made = []string{"etcd", "format.json", "kubeconfig", "pki"}

// removal returns the command that removes a server's data from a directory, or "". It names the directory only if no
// other files are in it.
func removal(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	var ours []string
	for _, e := range entries {
		if slices.Contains(made, e.Name()) {
			ours = append(ours, connect.Quote(filepath.Join(dir, e.Name())))
		}
	}
	switch {
	case err == nil && len(ours) == 0:
		return ""
	case len(ours) == len(entries): // or only the service may read the directory
		return "rm -r " + connect.Quote(dir)
	}
	return "rm -r " + strings.Join(ours, " ")
}

// sizeOf adds up the sizes of files. It skips files that it may not read.
func sizeOf(dir string) (size int64, err error) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil && e.Type().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size, err
}

func show(out io.Writer, form output.Form, pieces []piece) error {
	return form.Print(out, pieces, func(out io.Writer) error { return list(out, pieces) })
}

func list(out io.Writer, pieces []piece) error {
	fmt.Fprint(out, "Bowsprit files on this machine:\n\n")
	for _, p := range pieces {
		size := ""
		if p.Bytes > 0 {
			size = " (" + output.Size(p.Bytes) + ")"
		}
		fmt.Fprintf(out, "%s: %s%s\n  %s\n\n", p.Description, p.Path, size, p.Remove)
	}
	_, err := fmt.Fprintln(out,
		`Nothing was removed. Stop the server before removing its data; "bowsprit backup FILE" keeps a copy, with its
certificates.`)
	return err
}
