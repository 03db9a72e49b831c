package batch_test

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/plugintest"
)

func TestPlugins(t *testing.T) { plugintest.Run(t) }
