module github.com/holdfast-go/holdfast/cmd/holdfast

go 1.26.0

replace github.com/holdfast-go/holdfast => ../../

require (
	github.com/FZambia/sentinel/v2 v2.0.1
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/gomodule/redigo v1.9.3
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/mna/redisc v1.4.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	github.com/valkey-io/valkey-go v1.0.79
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
)
