package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit"
)

// simulateFlag is the setting with which the kube-apiserver of an envtest directory simulates workloads. "serve" has
// the same flag and variable.
const simulateFlag = "simulate"

// assetSettings is the file with the settings of a kube-apiserver, in its directory.
const assetSettings = "kube-apiserver.yaml"

// bindSimulate declares --simulate with its help for "serve".
func bindSimulate(f *pflag.FlagSet, c *bowsprit.Config) {
	for _, s := range c.Settings(bowsprit.Serve) {
		if s.Name == simulateFlag {
			bind(f, s, nil)
		}
	}
}

// writeAssetSettings writes the settings of the kube-apiserver in dir. Without a simulation it removes the file of an
// earlier run.
func writeAssetSettings(dir string, c bowsprit.WorkloadsConfig) error {
	file := filepath.Join(dir, assetSettings)
	if c.Simulate == nil {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := yaml.Marshal(map[string]any{simulateFlag: c.Simulate})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// checkSimulation returns the error that a server would report, and makes the paths of Stages absolute: envtest starts
// the server in the directory of the tests.
func checkSimulation(c bowsprit.WorkloadsConfig) error {
	if err := (bowsprit.Config{Ephemeral: true, Workloads: c}).Validate(); err != nil {
		return err
	}
	stages, ok := c.Simulate["stages"]
	if !ok {
		return nil
	}
	paths := filepath.SplitList(stages)
	for i, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		paths[i] = absolute
	}
	c.Simulate["stages"] = strings.Join(paths, string(os.PathListSeparator))
	return nil
}

// simulateAsAsset switches the simulation and the controllers on if the directory of an asset, or the environment, has
// the setting. program is the name under which this process was started. from is the file or variable with the setting.
func simulateAsAsset(c *bowsprit.Config, program string, environment []string) (from string, err error) {
	if strings.TrimSuffix(filepath.Base(program), ".exe") != assets[0] {
		return "", nil
	}
	var s sources
	if path, err := exec.LookPath(program); err == nil { // a name without a directory was found in PATH
		if file := filepath.Join(filepath.Dir(path), assetSettings); exists(file) {
			s.file = file
		}
	}
	f := pflag.NewFlagSet(assets[0], pflag.ContinueOnError)
	bindSimulate(f, c)
	if err := s.apply(f, environment); err != nil {
		return "", err
	}
	if c.Workloads.Simulate != nil {
		c.Controllers.Enabled = nil // all: the simulation without them is no cluster
	}
	return s.from[simulateFlag], nil
}

// exists reports whether there is a file, readable or not.
func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// describeAssets is the message of "envtest" about the server that it installed.
func describeAssets(simulated bool) string {
	if simulated {
		return "kube-apiserver in this directory runs controllers and simulates workloads."
	}
	return fmt.Sprintf("kube-apiserver in this directory runs no controllers, as in Kubernetes; add --%s for them.",
		simulateFlag)
}
