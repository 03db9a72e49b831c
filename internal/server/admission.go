package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/parts"
)

// buildAdmission makes the chain of enabled plugins. Errors are about their configuration.
func (p *process) buildAdmission(context.Context) error {
	configured, err := p.admissionConfig()
	if err != nil {
		return err
	}
	p.host.Admission, p.host.AdmissionMetrics = configured, admit.NewMetrics(p.host.Metrics)
	p.admission = admit.Chain{Metrics: p.host.AdmissionMetrics}
	emulated, features := config.Emulated(&p.config.Emulation), p.config.API.Features
	for _, wanted := range parts.Plugins(p.parts, p.behind) {
		if slices.Contains(p.config.Admission.Disabled, wanted.Name) || emulated.LacksPlugin(wanted.Name, features) {
			continue
		}
		plugin, err := wanted.New(&p.host)
		if err != nil {
			return fmt.Errorf("--admission-control-config-file: %w", err)
		}
		if plugin != nil {
			p.admission.Plugins = append(p.admission.Plugins, plugin)
		}
	}
	return nil
}

// admissionConfig returns the configuration of plugins in the user's file.
func (p *process) admissionConfig() (configuration.Configuration, error) {
	if p.config.Admission.ConfigFile == "" {
		return configuration.Configuration{}, nil
	}
	c, err := configuration.Read(p.config.Admission.ConfigFile)
	if err != nil {
		return c, fmt.Errorf("--admission-control-config-file: %w", err)
	}
	if len(c.Unused) > 0 {
		p.log.Warn("--admission-control-config-file configures what cannot be configured here", "plugins", c.Unused)
	}
	return c, nil
}
