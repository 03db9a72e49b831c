package config

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// Versions configures the conversion of custom objects between versions.
type Versions struct {
	// MigrateStorage rewrites the objects of a custom kind by itself when its storage version changes, with a
	// StorageVersionMigration named after the definition and its generation.
	MigrateStorage bool
	// Conversions convert objects of custom kinds between their versions inside this program. They override the
	// conversion of the kinds' definitions.
	Conversions map[schema.GroupKind]Conversion
}

// Conversion returns objects, which it must not change, in version apiVersion ("group/version"), in the same order.
// Objects are decoded JSON: map[string]any, []any, string, bool, int64, float64, nil. The server checks the result like
// the response of a conversion webhook: in metadata, only labels and annotations may differ.
type Conversion = func(ctx context.Context, objects []map[string]any, apiVersion string) ([]map[string]any, error)

func (c *Versions) settings() []Setting {
	return []Setting{{
		Name:  "migrate-storage-versions",
		Help:  "rewrite the stored objects of a custom kind automatically when its storage version changes",
		Value: &c.MigrateStorage, Only: Serve,
	}}
}

// migrations are the objects that request storage migrations. The server serves them by default.
var migrations = schema.GroupVersionResource{
	Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations",
}

// storageMigration is the name of the controller that migrates objects.
const storageMigration = "storage-version-migrator-controller"

func (c *Versions) validate(p *problems, all *Config) {
	if !c.MigrateStorage {
		return
	}
	config := kinds.RuntimeConfig(all.API.RuntimeConfig)
	switch emulate := Emulated(&all.Emulation); {
	case !config.Serves(migrations, true):
		p.add("--migrate-storage-versions needs %s, which --runtime-config disables: remove one of the two",
			migrations.GroupVersion())
	case emulate.Emulates() && !emulate.Serves(config, migrations):
		p.add("--migrate-storage-versions needs %s, which --emulated-version %s does not have: remove one of the two",
			migrations.GroupVersion(), emulate.Version)
	}
	if !Runs(&all.Controllers, storageMigration) {
		p.add(
			"--migrate-storage-versions needs the controller %s, which --controllers disables: remove one of the two",
			storageMigration)
	}
}
