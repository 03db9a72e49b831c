package bowsprit

import (
	"github.com/bowsprit/bowsprit/internal/server"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/version"
)

// Server is a control plane in this process.
type Server = server.Server

// New returns a server that is not running yet. It returns an error for an invalid configuration.
func New(c Config) (*Server, error) { return server.New(c) }

// VersionInfo holds the versions of the running program.
type VersionInfo = version.Info

// Version returns the version of the running program.
func Version() VersionInfo { return version.Get() }

// AdmissionPlugins returns the valid names for AdmissionConfig.Disabled, which are kube-apiserver's, in the order in
// which the plugins run.
func AdmissionPlugins() []string { return config.AdmissionPlugins() }
