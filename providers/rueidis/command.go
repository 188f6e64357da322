package rueidis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// SetNX implements driver.Driver.
func (d *rueidisDriver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	return send(ctx, d, []string{key}, []string{value, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10)}, set,
		"SET")
}

// set converts what SET NX answered.
func set(res rueidis.RedisResult) (bool, error) {
	switch text, err := res.ToString(); {
	case err == nil && text == "OK":
		return true, nil
	case rueidis.IsRedisNil(err):
		return false, nil
	}
	return false, fmt.Errorf("rueidis: SET NX was answered with %s: want OK or nil", res.String())
}

// Eval implements driver.Driver.
func (d *rueidisDriver) Eval(
	ctx context.Context, s *driver.Script, keys, args []string,
) (driver.Reply, error) {
	return d.scripts.Eval(ctx, s, func(command, body string) (driver.Reply, error) {
		return send(ctx, d, keys, args, reply, command, body, strconv.Itoa(len(keys)))
	})
}

// reply converts what a script answered.
func reply(res rueidis.RedisResult) (driver.Reply, error) {
	v, err := res.ToAny()
	if err != nil && !rueidis.IsRedisNil(err) {
		return driver.Reply{}, err
	}
	return driver.NewReply(v)
}
