package server

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/admit/manifest"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/parts"
)

// buildAdmission makes the chain of enabled plugins. Errors are about their configuration.
func (b *built) buildAdmission(context.Context) error {
	configured, err := b.admissionConfig()
	if err != nil {
		return err
	}
	b.host.Admission, b.host.AdmissionMetrics = configured, admit.NewMetrics(b.host.Metrics)
	if configured.HasManifests() {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		b.host.ManifestMetrics = manifest.NewMetrics(b.host.Metrics, identity.Name(host))
	}
	b.admission = admit.Chain{Metrics: b.host.AdmissionMetrics}
	emulated, features := config.Emulated(&b.config.Emulation), b.config.API.Features
	for _, wanted := range parts.Plugins(b.parts, b.behind) {
		if slices.Contains(b.config.Admission.Disabled, wanted.Name) || emulated.LacksPlugin(wanted.Name, features) {
			continue
		}
		plugin, err := wanted.New(&b.host)
		if err != nil {
			return fmt.Errorf("--admission-control-config-file: %w", err)
		}
		if plugin != nil {
			b.admission.Plugins = append(b.admission.Plugins, plugin)
		}
	}
	return nil
}

// admissionConfig returns the configuration of plugins in the user's file.
func (b *built) admissionConfig() (configuration.Configuration, error) {
	if b.config.Admission.ConfigFile == "" {
		return configuration.Configuration{}, nil
	}
	c, err := configuration.Read(b.config.Admission.ConfigFile, configuration.Options{
		Manifests: config.Emulated(&b.config.Emulation).Has(kinds.AdmissionManifests, b.config.API.Features),
	})
	if err != nil {
		return c, fmt.Errorf("--admission-control-config-file: %w", err)
	}
	if len(c.Unused) > 0 {
		b.log.Warn("--admission-control-config-file configures plugins without configuration here", "plugins", c.Unused)
	}
	return c, nil
}
