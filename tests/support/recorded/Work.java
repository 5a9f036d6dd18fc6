import java.util.HashMap;
import java.util.Map;

/** Keeps calls, maps and streams busy: java Work MILLISECONDS, of time and of processor time */
public class Work {
  static int fib(int n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
  }

  static long merged(int seed) {
    Map<String, Integer> counts = new HashMap<>();
    for (int i = 0; i < 300; i++) counts.merge("" + (i * 7919 % 1000), 1, Integer::sum);
    return counts.values().stream().mapToInt(x -> x).sum() + seed;
  }

  static long used() {
    return ProcessHandle.current().info().totalCpuDuration().map(time -> time.toMillis()).orElse(Long.MAX_VALUE);
  }

  public static void main(String[] arguments) {
    long least = Long.parseLong(arguments[0]), end = System.currentTimeMillis() + least;
    long total = 0;
    while (System.currentTimeMillis() < end || used() < least) {
      for (int i = 0; i < 100; i++) total += fib(15) + merged(i);
    }
    System.out.println(total);
  }
}
