// Preloaded by same-tests.mjs: the process believes that it is PAWL_SHIFT_DAYS later.
const RealDate = Date
const shiftMs = Number(process.env.PAWL_SHIFT_DAYS ?? 0) * 86_400_000

globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RealDate.now() + shiftMs] : args))
  }
  static now() {
    return RealDate.now() + shiftMs
  }
}
