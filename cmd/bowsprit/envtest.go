package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// assets are the programs that envtest starts from KUBEBUILDER_ASSETS, and the names under which this one behaves as
// they do.
var assets = [...]string{"kube-apiserver", "etcd", "kubectl"}

func envtestCommand() *cobra.Command {
	var config bowsprit.Config
	cmd := &cobra.Command{
		Use:   "envtest DIRECTORY",
		Short: "Fill a directory for envtest's KUBEBUILDER_ASSETS",
		Long: `Fill a directory with kube-apiserver, etcd and kubectl, as links to this program, for tests with controller-runtime's
envtest, which starts the programs in the directory KUBEBUILDER_ASSETS.

This kube-apiserver behaves like Kubernetes' own, which runs no controllers: a deleted namespace stays, and a Deployment
gets no pods. With --simulate it also deletes namespaces, collects garbage, and simulates nodes and workloads. The
variable ` + variableOf(simulateFlag) + ` does the same for one run of tests.`,
		Example: `  bowsprit envtest bin/envtest
  KUBEBUILDER_ASSETS=$PWD/bin/envtest go test ./...
  bowsprit envtest --simulate=nodes=3 bin/envtest-simulated   # with controllers and three nodes`,
		Args: arguments.One("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			if err := checkSimulation(config.Workloads); err != nil {
				return exit.Usage(err)
			}
			dir, err := fillAssets(args[0], program)
			if err != nil {
				return err
			}
			if err := writeAssetSettings(dir, config.Workloads); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), describeAssets(config.Workloads.Simulate != nil))
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "export KUBEBUILDER_ASSETS=%s\n", dir)
			return err
		},
	}
	bindSimulate(cmd.Flags(), &config)
	return cmd
}

// fillAssets links the assets in dir to program and returns its absolute path. It replaces links, for example from an
// earlier run, and no other files.
func fillAssets(dir, program string) (absolute string, err error) {
	dir, err = filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("%w: name a writable directory", err)
	}
	for _, name := range assets {
		found, err := os.Lstat(filepath.Join(dir, name))
		if err == nil && found.Mode()&fs.ModeSymlink == 0 {
			return "", fmt.Errorf("%s exists and is not a link: remove it, or name another directory",
				filepath.Join(dir, name))
		}
	}
	target := program
	if temporary(program) {
		if err := copyProgram(program, filepath.Join(dir, "bowsprit")); err != nil {
			return "", err
		}
		target = "bowsprit" // relative: the directory may be moved
	}
	for _, name := range assets {
		file := filepath.Join(dir, name)
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := os.Symlink(target, file); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// temporary reports whether program disappears when this process ends: "go run" builds below a directory of that name
// and removes it. A link to it would dangle.
func temporary(program string) bool {
	return strings.Contains(filepath.ToSlash(program), "/go-build")
}

func copyProgram(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	// A running program cannot be overwritten, but it can be replaced. So write under another name first.
	_ = os.Remove(to + ".new") // of a command that was killed, or a link
	temp, err := os.OpenFile(to+".new", os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(temp, source)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
